//! What to try in a demo that runs.

use super::cluster::{DemoCluster, SiteProcess};
use crate::agent::is_found_by_itself;
use crate::failure::Failure;
use crate::look::{ACCENT, BOLD, DIM, GOOD, WARN, styled};
use crate::output::VerbOutput;

/// What it shows, and what to paste.
type TourStep = (&'static str, Vec<String>);

pub(super) async fn print(cluster: &DemoCluster, output: &mut VerbOutput) -> Result<(), Failure> {
    let [first, second, ..] = cluster.sites.as_slice() else { return Ok(()) };
    let link = first.client()?.login_link().await?;
    output.line("")?;
    output.line(styled(BOLD, "Open any site in a browser; cut links and stop sites there"))?;
    // The agents of a demo have one token: who is let in at one is let in at all.
    let more = format!("(once, within 5 minutes; another: cheops open{})", agent_of(first));
    output.line(format!("  let it in: {} {}", styled(GOOD, link.url), styled(DIM, more)))?;
    for site in &cluster.sites {
        overview(site, output)?;
    }
    let names: Vec<String> = cluster.sites.iter().map(|site| site.name.to_string()).collect();
    steps(operations(first, second, &names.join(" & ")), output)?;
    match &cluster.lacks {
        None => steps(collaborations(&cluster.sites), output)?,
        Some(lacks) => {
            output.line(format!("\n{}", styled(WARN, format!("There would be more: {lacks}"))))?;
        }
    }
    let watching = vec![format!("cheops watch{}", agent_of(first))];
    steps(vec![("Watch what happens, live", watching)], output)?;
    output.line("")?;
    output.line(styled(DIM, "Paste these into another terminal. Ctrl-C ends everything here."))?;
    if let Some(folder) = not_in_path() {
        output.line(styled(DIM, "So that it finds the program, first:"))?;
        output.line(format!("  {}", styled(ACCENT, format!("export PATH=\"{folder}:$PATH\""))))?;
    }
    Ok(())
}

/// What runs at a site.
fn overview(site: &SiteProcess, output: &mut VerbOutput) -> Result<(), Failure> {
    let services = site.services.iter().map(|service| (service.name, service.proxy.to_string()));
    let kv = ("kv", site.kv.trim_start_matches("http://").to_owned());
    let places: Vec<String> =
        services.chain([kv]).map(|(name, address)| format!("{name} {address}")).collect();
    output.line(format!("  {}  {}", styled(BOLD, &site.name), styled(GOOD, &site.api)))?;
    output.line(styled(DIM, format!("         {}", places.join(", "))))?;
    Ok(output.line(styled(DIM, format!("         files in {}", site.files.display())))?)
}

fn steps(steps: Vec<TourStep>, output: &mut VerbOutput) -> Result<(), Failure> {
    for (what, commands) in steps {
        output.line("")?;
        output.line(styled(BOLD, what))?;
        for command in commands {
            output.line(format!("  {}", styled(ACCENT, command)))?;
        }
    }
    Ok(())
}

/// How a command says that it is for that site. The first one is asked if nothing is said.
fn agent_of(site: &SiteProcess) -> String {
    match is_found_by_itself(&site.api) {
        true => String::new(),
        false => format!(" --agent {}", site.api),
    }
}

fn operations(first: &SiteProcess, second: &SiteProcess, everywhere: &str) -> Vec<TourStep> {
    let (first_at, second_at) = (agent_of(first), agent_of(second));
    vec![
        (
            "Make a file at every site, and look at it",
            vec![
                format!(
                    "cheops exec{first_at} --id motd --sites '{everywhere}' --type set --profile file --target motd.txt -- 'echo hello > motd.txt'"
                ),
                format!("cheops show{second_at} --id motd -- cat motd.txt"),
            ],
        ),
        (
            "Cut all links; every site goes on alone",
            vec![
                "cheops demo cut".to_owned(),
                format!(
                    "cheops exec{first_at} --id motd --type add --wait local -- 'echo left >> motd.txt'"
                ),
                format!(
                    "cheops exec{second_at} --id motd --type set --wait local -- 'echo middle > motd.txt'"
                ),
                format!("cheops sites{first_at}"),
            ],
        ),
        (
            "Heal; all sites agree, and say why",
            vec![
                "cheops demo heal".to_owned(),
                format!("cheops show{first_at} --id motd -- cat motd.txt"),
                format!("cheops explain{second_at} motd"),
            ],
        ),
        (
            "The same with a REST service",
            vec![
                format!(
                    "cheops http{first_at} --id greeting --sites '{everywhere}' --type put --profile http --service kv PUT /kv/greeting --body hello"
                ),
                format!("curl {}/kv/greeting", second.kv),
            ],
        ),
    ]
}

/// One step for each kind of scope. Variables of the shell keep ids from one command to the next.
fn collaborations(sites: &[SiteProcess]) -> Vec<TourStep> {
    let place = |site: &SiteProcess, service: &str| {
        let found = site.service(service);
        found.map_or_else(String::new, |service| format!("http://{}/v1", service.proxy))
    };
    let [first, second, ..] = sites else { return Vec::new() };
    let (one, two) = (&first.name, &second.name);
    // Of three sites, the last one stands in; of two, the one that is asked.
    let other = &sites.get(2).unwrap_or(first).name;
    let [image, image_two] = [first, second].map(|site| place(site, "image"));
    let compute = place(first, "compute");
    let id = r#"sed 's/.*"id":"//;s/".*//'"#;
    vec![
        (
            "Sharing: a server at one site, from an image that only another has",
            vec![
                format!("id=$(curl -s -d '{{\"name\": \"debian\"}}' {image_two}/images | {id})"),
                format!("curl -X PUT -d bits {image_two}/images/$id/file"),
                format!(
                    "curl -d '{{\"name\": \"web\", \"image\": \"'$id'\"}}' -H 'X-Scope: {{compute: {one}, image: {two}}}' {compute}/servers"
                ),
            ],
        ),
        (
            "Replication: an image made and kept at two sites, changed at both during a cut",
            vec![
                format!(
                    "id=$(curl -s -d '{{\"name\": \"alpine\"}}' -H 'X-Scope: {{image: {one} & {two}}}' {image}/images | {id})"
                ),
                format!("curl -X PUT -d bits {image}/images/$id/file"),
                format!("until curl -sf {image_two}/images/$id/file; do sleep 1; done"),
                format!("cheops demo cut {one} {two}"),
                format!("curl -X PATCH -d '{{\"os\": \"linux\"}}' {image}/images/$id"),
                format!("curl -X PATCH -d '{{\"version\": 3}}' {image_two}/images/$id"),
                "cheops demo heal".to_owned(),
                format!("curl {image}/images/$id {image_two}/images/$id"),
            ],
        ),
        (
            "Cross: one server over two sites, with half of its cpus at each",
            vec![
                format!(
                    "curl -d '{{\"name\": \"big\", \"image\": \"'$id'\", \"cpus\": 6}}' -H 'X-Scope: {{compute: {one} % {two}}}' {compute}/servers"
                ),
                format!("curl -H 'X-Scope: {{compute: {one} % {two}}}' {compute}/capacity"),
            ],
        ),
        (
            "Otherwise: who answers is in X-Cheops-Site",
            vec![
                format!("curl -i -H 'X-Scope: {{image: {two} ; {other}}}' {image}/images"),
                format!("cheops demo stop {two}"),
                format!("curl -i -H 'X-Scope: {{image: {two} ; {other}}}' {image}/images"),
                format!("cheops demo start {two}"),
            ],
        ),
        (
            "Around: the nearest that works; `cheops with` sets the scope for any program",
            vec![
                format!("cheops demo stop {one} image"),
                format!(
                    "cheops with --scope '{{image: around({one}, 10ms)}}' -- curl -i {image}/images"
                ),
                format!("cheops demo start {one} image"),
            ],
        ),
    ]
}

/// The folder of this program, if a shell would not look there.
fn not_in_path() -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let folder = program.parent()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_known = std::env::split_paths(&path).any(|known| known == folder);
    (!is_known).then(|| folder.display().to_string())
}
