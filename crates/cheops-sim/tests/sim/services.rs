//! Services that draw their own ids, behind sites that lose messages, links and disks.
use cheops_core::model::ResourceId;
use cheops_sim::{ServiceLoad, Setup, Usage, Weather, World};

const ALBUMS: usize = 20;
const PHOTOS: usize = 3;

fn id(text: &str) -> ResourceId {
    ResourceId::new(text).expect("a valid id")
}

/// Albums, each with its photos right after it, at the first site.
fn fill(world: &mut World, users: &ServiceLoad) {
    for album in 0..ALBUMS {
        let name = format!("album{album}");
        world.submit(0, users.thing(&name, "/albums", None));
        for photo in 0..PHOTOS {
            let below = format!("/albums/{name}/photos");
            let photo = users.thing(&format!("{name}-photo{photo}"), &below, Some(id(&name)));
            world.submit(0, photo);
        }
    }
}

fn missing(world: &World, site: usize) -> Vec<String> {
    let photo = |n: usize| format!("album{}-photo{}", n / PHOTOS, n % PHOTOS);
    let is_missing = |name: &String| world.sites[site].service.made_by(&id(name)).count() != 1;
    (0..ALBUMS * PHOTOS).map(photo).filter(is_missing).collect()
}

#[test]
fn after_a_heal_all_photos_of_all_albums_are_there_in_whatever_order_they_arrive() {
    for seed in 1..=20 {
        let mut world = World::new(Setup::new(3, seed));
        let users = ServiceLoad::new(0, Usage::Albums, vec![0, 1, 2]);
        world.run_for(3_000).expect("nothing wrong");
        world.network.weather = Weather { loss: 200, duplication: 200, reordering: 500 };
        world.cut_both_ways(0, 2);
        world.cut_both_ways(1, 2);
        fill(&mut world, &users);
        world.run_for(20_000).expect("nothing wrong");
        world.network.heal_all();
        world.run_for(300_000).expect("nothing wrong");
        for site in 0..3 {
            assert_eq!(missing(&world, site), Vec::<String>::new(), "seed {seed}, site {site}");
        }
    }
}

#[test]
fn a_site_that_lost_its_service_makes_everything_anew_in_the_right_order() {
    for seed in 1..=20 {
        let mut world = World::new(Setup::new(2, seed));
        let users = ServiceLoad::new(0, Usage::Albums, vec![0, 1]);
        world.run_for(3_000).expect("nothing wrong");
        fill(&mut world, &users);
        world.run_for(60_000).expect("nothing wrong");
        world.lose_disk(1, true);
        world.run_for(300_000).expect("every id leads to its own object");
        assert_eq!(missing(&world, 1), Vec::<String>::new(), "seed {seed}");
    }
}
