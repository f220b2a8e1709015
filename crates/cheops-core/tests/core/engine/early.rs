//! What comes before it can be taken in: it waits in the room that its sender has, and nowhere else.

use super::fixture::*;
use cheops_core::engine::{Declared, Settings};

const ROOM: usize = 16 * 1024;

fn with_little_room() -> Settings {
    let mut settings = settings("lyon nantes");
    settings.waiting_bytes = ROOM;
    settings
}

fn name(of: u64) -> String {
    format!("r{of}")
}

/// As the author's hundred-and-somethingth entries, each resource has its own hundred.
fn number(of: u64, n: u64) -> u64 {
    100 * of + n
}

/// How many bytes of that site's word paris keeps.
fn kept_of(paris: &Site, of: &str) -> usize {
    paris.engine.waiting_bytes().0.get(&site(of)).copied().unwrap_or(0)
}

/// Twenty resources that lyon, nantes and paris share, as lyon made them.
fn twenty() -> (Site, Vec<Other>) {
    let mut paris = start(with_little_room());
    let lyons: Vec<Other> = (1..=20)
        .map(|of| {
            let mut lyon = other("lyon").on(&name(of));
            let made = op("inc").declaring("lyon nantes paris", Some(matrix("ordered")));
            let news = lyon.tells_of(made.numbered(number(of, 1), 0));
            paris.hears("lyon", news);
            lyon
        })
        .collect();
    (paris, lyons)
}

#[test]
fn what_a_liar_makes_wait_takes_one_room_however_many_resources_it_is_about() {
    let (mut paris, lyons) = twenty();
    for (of, lyon) in (1..).zip(&lyons) {
        let mut liar = lyon.clone();
        // Each after one that nobody will ever see.
        let waiting = (1..10).map(|n| {
            let after = number(of, 2 * n);
            liar.writes(op("inc").numbered(after + 1, after).on("lyon.1"))
        });
        let waiting: Vec<_> = waiting.collect();
        paris.hears("lyon", liar.tells(waiting));
    }
    let kept = kept_of(&paris, "lyon");
    assert!((ROOM / 2..=ROOM).contains(&kept), "{kept}");
    // Nantes has its own room.
    let mut nantes = other("nantes").on(&name(20));
    nantes.learns("lyon.2001");
    let second = nantes.writes(op("inc").on("lyon.2001").numbered(5, 0));
    let third = nantes.writes(op("inc").on("nantes.5").numbered(6, 5));
    paris.hears("nantes", nantes.tells([third]));
    assert!(paris.engine.awaits_past(&resource(&name(20)), &operation("nantes.6")));
    paris.hears("nantes", nantes.tells([second]));
    assert!(paris.engine.knows(&resource(&name(20)), &operation("nantes.6")));
    assert_eq!(kept_of(&paris, "nantes"), 0);
}

#[test]
fn what_found_no_room_is_taken_in_when_it_is_sent_again_in_order() {
    let (mut paris, mut lyons) = twenty();
    let mut sent = Vec::new();
    for (of, lyon) in (1..).zip(&mut lyons) {
        let chain = (2..12).map(|n| {
            let before = format!("lyon.{}", number(of, n - 1));
            lyon.writes(op("inc").on(&before).numbered(number(of, n), number(of, n - 1)))
        });
        let chain: Vec<_> = chain.collect();
        // The first of them was lost on the way, of each.
        paris.hears("lyon", lyon.tells(chain[1..].to_vec()));
        sent.push(chain);
    }
    assert!(kept_of(&paris, "lyon") <= ROOM);
    for (lyon, chain) in lyons.iter().zip(sent) {
        paris.hears("lyon", lyon.tells(chain));
    }
    for of in 1..=20 {
        let last = operation(&format!("lyon.{}", number(of, 11)));
        assert!(paris.engine.knows(&resource(&name(of)), &last), "{of}");
    }
    assert_eq!(kept_of(&paris, "lyon"), 0);
}

/// That resource, of which paris has lost all that lyon says was forgotten.
fn forgotten(of: &str, by: &str) -> News {
    let mut teller = other(by).on(of);
    teller.learns("lyon.1");
    let declared = Declared { sites: sites("lyon nantes paris"), config: None, id_map: None };
    let claim = teller.tells([]).pruned("lyon.1");
    claim.changed(|it| it.base.as_mut().unwrap().declared = Some(declared))
}

#[test]
fn resources_that_a_liar_offers_take_its_own_room_and_those_of_others_are_kept_in_mind() {
    let mut paris = start(with_little_room());
    paris.at(1_000);
    for of in 0..100 {
        paris.hears("lyon", forgotten(&format!("made-up-{of}"), "lyon"));
    }
    let kept = kept_of(&paris, "lyon");
    assert!((ROOM / 2..=ROOM).contains(&kept), "{kept}");
    paris.hears("nantes", forgotten("counter", "nantes"));
    assert!(kept_of(&paris, "nantes") > 0);
    assert_eq!(paris.engine.resources().len(), 0, "the others have time to say what they know");
    paris.at(20_000).hears("nantes", forgotten("counter", "nantes"));
    assert_eq!(paris.engine.resources().len(), 1, "lyon is silent, and is waited for no more");
}

#[test]
fn what_was_offered_and_never_believed_is_forgotten_and_can_be_offered_anew() {
    let mut paris = start(with_little_room());
    paris.at(1_000);
    paris.hears("lyon", forgotten("counter", "lyon"));
    assert!(kept_of(&paris, "lyon") > 0);
    paris.lives_until(700_000);
    assert_eq!(kept_of(&paris, "lyon"), 0);
    paris.hears("lyon", forgotten("counter", "lyon"));
    paris.at(720_000).hears("lyon", forgotten("counter", "lyon"));
    assert_eq!(paris.engine.resources().len(), 1, "nobody else has said anything by then");
}

#[test]
fn an_offer_is_kept_in_mind_also_where_what_comes_with_it_fills_the_room() {
    let mut paris = start(with_little_room());
    let mut nantes = other("nantes");
    nantes.learns("lyon.1");
    let entries: Vec<_> = (0..60).map(|_| nantes.writes(op("inc").on("lyon.1"))).collect();
    let with = |entries: &[_]| {
        forgotten("counter", "nantes").changed(|it| {
            it.entries = entries.to_vec();
            it.knows = nantes.knows.clone();
        })
    };
    paris.at(1_000).hears("nantes", with(&entries));
    assert!(kept_of(&paris, "nantes") > 0);
    paris.at(20_000).hears("nantes", with(&entries));
    assert!(paris.engine.knows(&resource("counter"), &operation("nantes.60")));
    assert_eq!(kept_of(&paris, "nantes"), 0);
}
