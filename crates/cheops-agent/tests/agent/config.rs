//! The agent's config file: what it means, and what is said of mistakes in it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use cheops_agent::config::{
    AgentConfig, ConfigProblems, CrossConfig, LogFormat, Pointer, Secret, ServiceConfig,
};
use cheops_core::config::{HookAction, HookEvent, HookRun};
use cheops_core::engine::Application;
use cheops_core::model::{OperationId, SiteId};
use cheops_scope::MAX_SITE_BYTES;
use expect_test::expect;

const FULL: &str = r#"
site = "site1"
data_dir = "data"
application = "empty"

[api]
listen = "127.0.0.1:8079"

[mesh]
listen = "0.0.0.0:8079"    # UDP: no clash
advertise = "site1.example:8078"
identity = "/etc/cheops/site1.pem"

[[peers]]
site = "site2"
address = "10.0.0.2:8078"

[[peers]]
site = "site3"
address = "site3.example:8078"

[[services]]
name = "image"
listen = "127.0.0.1:19292"
upstream = "http://127.0.0.1:9292/v2"
hosts = ["image.example", "10.0.0.1:19292"]
origins = "https://ui.example"
trust_correlation = true

[[services]]
name = "internal"
upstream = "http://127.0.0.1:9293"

[[services]]
name = "shared"
upstream = "http://127.0.0.1:9294"
offer = true

[proxy]
answer_limit = "90s"
remember = "1h"
correlation_headers = ["X-Correlation-ID"]

[shell]
time_limit = "5m"
output_limit = "1MiB"
jobs_at_once = 8
directory = "work"

[logic]
shopping = "python3 shopping.py"
"eu.prices-1" = "./prices"

[audit]
retention = "30d"

[log]
level = "debug"
format = "json"

[[hooks]]
on = "partial-error"
url = "https://ops.example/cheops"
run = "once"
types = ["set", "inc"]
resources = ["image/*"]
secret = "0123456789abcdef"

[webhooks]
secret = "fedcba9876543210"
time_limit = "3s"
attempts = 2
"#;

fn parse(text: &str, environment: &[(&str, &str)]) -> Result<AgentConfig, ConfigProblems> {
    let environment: BTreeMap<&str, &str> = environment.iter().copied().collect();
    let look = |name: &str| environment.get(name).map(|value| (*value).to_owned());
    AgentConfig::parse(text, Path::new("/etc/cheops/agent.toml"), look)
}

fn problems(text: &str, environment: &[(&str, &str)]) -> String {
    parse(text, environment).expect_err(text).to_string()
}

#[test]
fn a_collector_is_taken_by_a_program_that_can_export_and_refused_by_any_other() {
    let text = "site = \"paris\"\n[telemetry]\notlp = \"http://127.0.0.1:4318\"";
    if cfg!(feature = "otlp") {
        let collector = parse(text, &[]).unwrap().telemetry.otlp.unwrap();
        assert_eq!(collector.to_string(), "http://127.0.0.1:4318/");
    } else {
        expect![[r#"
            the config `/etc/cheops/agent.toml` cannot be used:
            /etc/cheops/agent.toml:3:8: `telemetry.otlp`: needs a program that was built with `--features otlp`, and this one was not"#]]
        .assert_eq(&problems(text, &[]));
    }
}

#[test]
fn a_full_file_is_read() {
    let config = parse(FULL, &[]).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(config.site.as_str(), "site1");
    assert_eq!(config.data_dir, Path::new("/etc/cheops/data"));
    assert_eq!(config.application, Application::Empty);
    assert_eq!(config.api.listen.to_string(), "127.0.0.1:8079");
    let mesh = config.mesh.unwrap();
    assert_eq!(mesh.identity, Path::new("/etc/cheops/site1.pem"));
    assert_eq!(mesh.advertise.unwrap().host(), "site1.example");
    let peers: Vec<_> = config.peers.iter().map(|peer| peer.address.to_string()).collect();
    assert_eq!(peers, ["10.0.0.2:8078", "site3.example:8078"]);
    assert_eq!(config.services[0].name.as_str(), "image");
    assert_eq!(config.services[0].upstream.to_string(), "http://127.0.0.1:9292/v2");
    let [image, internal, shared] = config.services.as_slice() else { panic!("three of them") };
    assert_eq!((image.hosts.len(), image.origins.len(), image.trust_correlation), (2, 1, true));
    assert!(image.hosts[0].is_met_by("image.example:19292"));
    assert_eq!((image.offer, internal.offer, shared.offer), (true, false, true));
    assert!(!internal.trust_correlation && internal.hosts.is_empty());
    assert!(!config.proxy.unsigned_cross_ids);
    assert_eq!(config.proxy.answer_limit, Duration::from_secs(90));
    assert_eq!(config.proxy.remember, Duration::from_secs(3_600));
    assert_eq!(config.proxy.correlation_headers, ["x-correlation-id"]);
    assert_eq!(config.shell.time_limit, Duration::from_secs(300));
    assert_eq!(config.shell.output_limit, 1 << 20);
    assert_eq!(config.shell.jobs_at_once, 8);
    assert_eq!(config.shell.directory.as_deref(), Some(Path::new("/etc/cheops/work")));
    let programs: Vec<_> = config.logic.iter().map(|(name, it)| [name.as_str(), it]).collect();
    assert_eq!(programs, [["eu.prices-1", "./prices"], ["shopping", "python3 shopping.py"]]);
    assert_eq!(config.audit.retention, Duration::from_secs(30 * 24 * 60 * 60));
    assert_eq!((config.log.level, config.log.format), (tracing::Level::DEBUG, LogFormat::Json));
    let hook = &config.hooks[0];
    assert_eq!((hook.hook.on, hook.hook.run), (HookEvent::PartialError, HookRun::Once));
    assert_eq!(hook.hook.action, HookAction::Url("https://ops.example/cheops".to_owned()));
    assert_eq!(hook.secret, Some(Secret::new("0123456789abcdef").unwrap()));
    assert!(hook.resources[0].fits("image/1"));
    assert_eq!((config.webhooks.attempts, config.webhooks.time_limit.as_secs()), (2, 3));
}

#[test]
fn the_least_file_has_defaults_for_the_rest() {
    let config = parse("site = \"a\"", &[]).unwrap();
    assert_eq!(config.data_dir, Path::new("/etc/cheops/cheops-data"));
    assert_eq!(config.api.listen.to_string(), "127.0.0.1:8079");
    assert_eq!(config.application, Application::MayHoldState);
    assert!(config.mesh.is_none() && config.peers.is_empty() && config.hooks.is_empty());
}

#[test]
fn the_environment_overrides_the_file() {
    let environment = [
        ("CHEOPS_SITE", "paris"),
        ("CHEOPS_DATA_DIR", "here/data"),
        ("CHEOPS_API_LISTEN", "127.0.0.1:0"),
        ("CHEOPS_MESH_LISTEN", "127.0.0.1:0"),
        ("CHEOPS_MESH_IDENTITY", "paris.pem"),
        ("CHEOPS_SHELL_TIME_LIMIT", "10s"),
        ("CHEOPS_SHELL_JOBS_AT_ONCE", "2"),
        ("CHEOPS_LOG_LEVEL", "TRACE"),
        ("CHEOPS_AUDIT_RETENTION", ""),
        ("CHEOPS_WEBHOOKS_SECRET", "a secret of the environment"),
        ("CHEOPS_UNRELATED", "x"),
    ];
    let config = parse("site = \"a\"", &environment).unwrap();
    assert_eq!(config.site.as_str(), "paris");
    assert_eq!(config.data_dir, Path::new("here/data"));
    let mesh = config.mesh.unwrap();
    assert_eq!((mesh.listen.port(), mesh.identity.as_path()), (0, Path::new("paris.pem")));
    assert_eq!(config.shell.time_limit, Duration::from_secs(10));
    assert_eq!(config.shell.jobs_at_once, 2);
    assert_eq!(config.log.level, tracing::Level::TRACE);
    assert!(config.webhooks.secret.is_some());
}

#[test]
fn every_mistake_is_reported_with_its_place() {
    let text = r#"site = "not a name"
data_dir = 7.5
aplication = "empty"

[api]
listen = "localhost"
port = 1

[mesh]
listen = "0.0.0.0:8078"
advertise = "nowhere"

[[peers]]
site = "b"
address = "10.0.0.2:8078"
[[peers]]
site = "b"
address = "10.0.0.2:8078"
[[peers]]
adress = "x:1"

[[services]]
name = "image"
listen = "127.0.0.1:8079"
upstream = "127.0.0.1:9292"
[[services]]
name = "image"
listen = "127.0.0.1:8080"
upstream = "http://localhost:8080"
[[services]]
name = "a b"
listen = "0.0.0.0:8080"
upstream = "http://h?q"

[shell]
time_limit = "0s"
output_limit = "64 KB of it"
jobs_at_once = 0
directory = ["x"]

[audit]
retention = 7

[log]
level = "inf"
format = "xml"

[[hooks]]
on = "faild"
[[hooks]]
command = "x"
url = "http://h"
[[hooks]]
on = "site-down"
run = "once"
command = " "
types = ["a b"]
resources = []
secret = "short"
[[hooks]]
on = "applied"
url = "ftp://h"
secret = "a long enough secret"
secret_file = "none"

[webhooks]
secret_file = "/no/such/file"
attempts = 1000
"#;
    expect![[r#"
        the config `/etc/cheops/agent.toml` cannot be used, for 41 reasons:
        /etc/cheops/agent.toml:1:8: `site`: `not a name` cannot be used: ` ` cannot be part of a name, which is made of `a` to `z`, `A` to `Z`, `0` to `9`, `.`, `_` and `-`; expected a name such as `paris` or `site1`
        /etc/cheops/agent.toml:2:12: `data_dir`: found the number `7.5`; expected a path
        /etc/cheops/agent.toml:3:1: `aplication`: there is no such key; did you mean `application`?
        /etc/cheops/agent.toml:6:10: `api.listen`: `localhost` cannot be used: invalid socket address syntax; expected an address to listen on, such as `127.0.0.1:8079`
        /etc/cheops/agent.toml:7:1: `api.port`: there is no such key; expected one of `listen`, `socket`, `auth`, `token_file`, `tls`, `metrics`, `connections_per_address`
        /etc/cheops/agent.toml:9:1: `mesh.identity`: is missing; expected the file that `cheops mesh issue` wrote for this site
        /etc/cheops/agent.toml:11:13: `mesh.advertise`: `nowhere` has no port; expected a host and a port, such as `10.0.0.2:8078` or `paris.example:8078`
        /etc/cheops/agent.toml:17:8: `peers[1].site`: `b` is listed already, as `peers[0].site`
        /etc/cheops/agent.toml:18:11: `peers[1].address`: `10.0.0.2:8078` is the address of another peer, `peers[0].address`
        /etc/cheops/agent.toml:19:1: `peers[2].address`: is missing; expected a host and a port, such as `10.0.0.2:8078` or `paris.example:8078`
        /etc/cheops/agent.toml:19:1: `peers[2].site`: is missing; expected a name such as `paris` or `site1`
        /etc/cheops/agent.toml:20:1: `peers[2].adress`: there is no such key; did you mean `address`?
        /etc/cheops/agent.toml:24:10: `services[0].listen`: `127.0.0.1:8079` is taken by `api.listen`; expected a port of its own
        /etc/cheops/agent.toml:25:12: `services[0].upstream`: `127.0.0.1:9292` does not begin with `http://` or `https://`; expected an address such as `http://127.0.0.1:9292`
        /etc/cheops/agent.toml:27:8: `services[1].name`: `image` is listed already, as `services[0].name`
        /etc/cheops/agent.toml:29:12: `services[1].upstream`: `http://localhost:8080/` is where this agent listens itself, by `services[1].listen`; expected the service's own address
        /etc/cheops/agent.toml:31:8: `services[2].name`: `a b` cannot be used: ` ` cannot be part of a name, which is made of `a` to `z`, `A` to `Z`, `0` to `9`, `.`, `_` and `-`; expected a name such as `image`
        /etc/cheops/agent.toml:32:10: `services[2].listen`: `0.0.0.0:8080` is taken by `services[1].listen`; expected a port of its own
        /etc/cheops/agent.toml:33:12: `services[2].upstream`: `http://h?q` has a query, which is the request's to have; expected an address such as `http://127.0.0.1:9292`
        /etc/cheops/agent.toml:36:14: `shell.time_limit`: `0s` is no time at all; expected a time such as `500ms`, `60s`, `5m`, `2h` or `7d`
        /etc/cheops/agent.toml:37:16: `shell.output_limit`: `64 KB of it` has the unknown unit `KB of it`; expected a size such as `64KiB` or `1MiB`
        /etc/cheops/agent.toml:38:16: `shell.jobs_at_once`: `0` is nothing; expected a number from 1 to 4096
        /etc/cheops/agent.toml:39:13: `shell.directory`: found a list; expected a path
        /etc/cheops/agent.toml:42:13: `audit.retention`: `7` has no unit; expected a time such as `12h` or `7d`, or `0`
        /etc/cheops/agent.toml:45:9: `log.level`: `inf` is unknown; did you mean `info`?
        /etc/cheops/agent.toml:46:10: `log.format`: `xml` is unknown; expected one of `text`, `json`
        /etc/cheops/agent.toml:48:1: `hooks[0]`: there is neither `command` nor `url`; expected one of them
        /etc/cheops/agent.toml:49:6: `hooks[0].on`: `faild` is unknown; did you mean `failed`?
        /etc/cheops/agent.toml:50:1: `hooks[1]`: there are both `command` and `url`; expected one, or two hooks
        /etc/cheops/agent.toml:50:1: `hooks[1].on`: is missing; expected an event such as `failed` or `converged`
        /etc/cheops/agent.toml:53:1: `hooks[2].run`: has no meaning with `on = "site-down"`: each site sees for itself who is connected; use `each-site`
        /etc/cheops/agent.toml:56:11: `hooks[2].command`: ` ` is empty; expected a shell command
        /etc/cheops/agent.toml:57:9: `hooks[2].types`: has no meaning with `on = "site-down"`: no operation goes with it
        /etc/cheops/agent.toml:57:10: `hooks[2].types[0]`: `a b` cannot be used: `a b` is not a valid operation type: a letter or digit, then letters, digits, `.`, `_` or `-`; at most 128 characters; expected an operation type such as `set`
        /etc/cheops/agent.toml:58:13: `hooks[2].resources`: has no meaning with `on = "site-down"`: it is about a site
        /etc/cheops/agent.toml:58:13: `hooks[2].resources`: the list is empty; expected a resource's id, in which `*` stands for anything, or leave the key out
        /etc/cheops/agent.toml:59:10: `hooks[2].secret`: the secret has 5 bytes; expected at least 16
        /etc/cheops/agent.toml:62:7: `hooks[3].url`: `ftp://h` cannot be used: it must begin with `http://` or `https://`; expected an address such as `https://ops.example/x`
        /etc/cheops/agent.toml:63:10: `hooks[3].secret`: there is `secret_file` as well; expected one of them
        /etc/cheops/agent.toml:66:1: `webhooks.secret_file`: `/no/such/file` cannot be read: No such file or directory (os error 2)
        /etc/cheops/agent.toml:68:12: `webhooks.attempts`: `1000` is more than 20; expected a number from 1 to 20"#]].assert_eq(&problems(text, &[]));
}

#[test]
fn how_resources_are_named_and_divided_is_said_per_service() {
    let service = "site = \"a\"\n[[services]]\nname = \"s\"\nupstream = \"http://h:1\"\n";
    let config = parse(service, &[]).unwrap();
    assert!(config.services[0].id.is_empty());
    assert_eq!(config.services[0].cross, CrossConfig::default());

    let said = "id = \"/server/id\"\n[services.cross]\ndivide = [\"/cpus\", \"/disk/gb\"]\n\
                sum = \"/used\"\nweights = { paris = 2, lyon = 1 }";
    let config = parse(&format!("{service}{said}"), &[]).unwrap();
    let ServiceConfig { id, cross, .. } = &config.services[0];
    assert_eq!(id[0].as_str(), "/server/id");
    let listed =
        |pointers: &[Pointer]| pointers.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(listed(&cross.divide), ["/cpus", "/disk/gb"]);
    assert_eq!(listed(&cross.sum), ["/used"]);
    let weights: Vec<_> = cross.weights.iter().map(|(site, n)| (site.as_str(), *n)).collect();
    assert_eq!(weights, [("lyon", 1), ("paris", 2)]);

    let wrong = "id = [\"id\", 7.5]\n[services.cross]\ndivide = []\nsum = {}\n\
                 weight = 1\nweights = { \"a b\" = 1, lyon = 0 }";
    expect![[r#"
        the config `/etc/cheops/agent.toml` cannot be used, for 7 reasons:
        /etc/cheops/agent.toml:5:7: `services[0].id[0]`: `id` does not begin with `/`; expected a JSON pointer such as `/id` or `/server/id`
        /etc/cheops/agent.toml:5:13: `services[0].id[1]`: found the number `7.5`; expected a JSON pointer such as `/id` or `/server/id`
        /etc/cheops/agent.toml:7:10: `services[0].cross.divide`: the list is empty; expected a JSON pointer such as `/capacity`, or leave the key out
        /etc/cheops/agent.toml:8:7: `services[0].cross.sum`: found a table; expected a JSON pointer such as `/capacity`
        /etc/cheops/agent.toml:9:1: `services[0].cross.weight`: there is no such key; did you mean `weights`?
        /etc/cheops/agent.toml:10:13: `services[0].cross.weights.a b`: the key cannot be used: ` ` cannot be part of a name, which is made of `a` to `z`, `A` to `Z`, `0` to `9`, `.`, `_` and `-`; expected the name of a site
        /etc/cheops/agent.toml:10:31: `services[0].cross.weights.lyon`: `0` is nothing; expected a number from 1 to 1000000"#]].assert_eq(&problems(&format!("{service}{wrong}"), &[]));
    let wrong = "cross = { weights = [1] }";
    expect![[r#"
        the config `/etc/cheops/agent.toml` cannot be used:
        /etc/cheops/agent.toml:5:21: `services[0].cross.weights`: found a list; expected a table whose keys are each the name of a site"#]].assert_eq(&problems(&format!("{service}{wrong}"), &[]));
}

#[test]
fn programs_have_names_that_a_matrix_can_say_and_commands() {
    let wrong = "site = \"a\"\n[logic]\n\"a b\" = \"x\"\nempty = \" \"\nlist = [\"x\"]\n\
                 [logic.sub]\nx = \"y\"";
    expect![[r#"
        the config `/etc/cheops/agent.toml` cannot be used, for 4 reasons:
        /etc/cheops/agent.toml:3:1: `logic.a b`: the key cannot be used: `a b` is not a valid operation type: a letter or digit, then letters, digits, `.`, `_` or `-`; at most 128 characters; expected a name such as `shopping`, as in `logic:exec:shopping`
        /etc/cheops/agent.toml:4:9: `logic.empty`: ` ` is empty; expected a shell command, such as `python3 /srv/logic/shopping.py`
        /etc/cheops/agent.toml:5:8: `logic.list`: found a list; expected a shell command, such as `python3 /srv/logic/shopping.py`
        /etc/cheops/agent.toml:6:1: `logic.sub`: found a table; expected a shell command, such as `python3 /srv/logic/shopping.py`"#]].assert_eq(&problems(wrong, &[]));
    expect![[r#"
        the config `/etc/cheops/agent.toml` cannot be used:
        /etc/cheops/agent.toml:2:9: `logic`: found the text `x`; expected a table, `[logic]`"#]]
    .assert_eq(&problems("site = \"a\"\nlogic = \"x\"", &[]));
    expect![[r#"
        the config `/etc/cheops/agent.toml` cannot be used:
        /etc/cheops/agent.toml:2:2: `logics`: there is no such key; did you mean `logic`?"#]]
    .assert_eq(&problems("site = \"a\"\n[logics]\nx = \"y\"", &[]));
    let programs = |count| (0..count).map(|n| format!("p{n} = \"x\"\n")).collect::<String>();
    let text = |count| format!("site = \"a\"\n[logic]\n{}", programs(count));
    assert_eq!(parse(&text(64), &[]).unwrap().logic.len(), 64);
    expect![[r#"
        the config `/etc/cheops/agent.toml` cannot be used:
        /etc/cheops/agent.toml:2:1: `logic`: there are 65 programs; at most 64 are allowed"#]]
    .assert_eq(&problems(&text(65), &[]));
    let nul = problems("site = \"a\"\n[logic]\nnul = \"a\\u0000b\"", &[]);
    assert!(nul.contains("has a zero byte in it"), "{nul}");
    // A program may well start an agent, and what it is told is no setting.
    assert!(parse("site = \"a\"", &[("CHEOPS_LOGIC", "shopping")]).unwrap().logic.is_empty());
}

#[test]
fn mistakes_in_the_environment_name_the_variable() {
    let environment = [
        ("CHEOPS_API_LISTEN", "here"),
        ("CHEOPS_SHELL_TIME_LIMIT", "soon"),
        ("CHEOPS_WEBHOOKS_SECRET", "hush"),
    ];
    expect![[r#"
        the config `/etc/cheops/agent.toml` cannot be used, for 3 reasons:
        environment variable CHEOPS_API_LISTEN: `api.listen`: `here` cannot be used: invalid socket address syntax; expected an address to listen on, such as `127.0.0.1:8079`
        environment variable CHEOPS_SHELL_TIME_LIMIT: `shell.time_limit`: `soon` is no time; expected a time such as `500ms`, `60s`, `5m`, `2h` or `7d`
        environment variable CHEOPS_WEBHOOKS_SECRET: `webhooks.secret`: the secret has 4 bytes; expected at least 16"#]].assert_eq(&problems("site = \"a\"", &environment));
}

#[test]
fn slips_of_the_grammar_have_their_place() {
    expect![[r#"
        the config `/etc/cheops/agent.toml` cannot be used:
        /etc/cheops/agent.toml:2:5: this is not TOML: unclosed table, expected `]`"#]]
    .assert_eq(&problems("site = \"a\"\n[api\nlisten = \n", &[]));
    expect![[r#"
        the config `/etc/cheops/agent.toml` cannot be used:
        /etc/cheops/agent.toml:2:1: this is not TOML: duplicate key"#]]
    .assert_eq(&problems("site = \"a\"\nsite = \"b\"\n", &[]));
    expect![[r#"
        the config `/etc/cheops/agent.toml` cannot be used, for 3 reasons:
        /etc/cheops/agent.toml:2:7: `api`: found the number `7`; expected a table, `[api]`
        /etc/cheops/agent.toml:3:10: `peers[0]`: found the number `1`; expected tables, each under `[[peers]]`
        /etc/cheops/agent.toml:4:12: `services`: found a table; expected tables, each under `[[services]]`"#]].assert_eq(&problems("site = \"a\"\napi = 7\npeers = [1]\nservices = {}", &[]));
}

#[test]
fn what_does_not_fit_together_is_refused() {
    expect![[r#"
        the config `/etc/cheops/agent.toml` cannot be used, for 2 reasons:
        /etc/cheops/agent.toml:3:8: `peers[0].site`: `a` is this site; list only the others
        /etc/cheops/agent.toml: `mesh`: is missing, but there are peers; expected `[mesh]` with an `identity`"#]].assert_eq(&problems("site = \"a\"\n[[peers]]\nsite = \"a\"\naddress = \"h:1\"", &[]));
    expect![[r#"
        the config `/etc/cheops/agent.toml` cannot be used, for 2 reasons:
        /etc/cheops/agent.toml:1:1: `mesh.identity`: is missing; expected the file that `cheops mesh issue` wrote for this site
        /etc/cheops/agent.toml: `site`: is missing; expected a name such as `paris` or `site1`"#]].assert_eq(&problems("[mesh]", &[]));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let problems = AgentConfig::load(Path::new("/no/such/file.toml"), []).unwrap_err();
    expect![[r#"
        the config `/no/such/file.toml` cannot be used:
        /no/such/file.toml: it cannot be read: No such file or directory (os error 2)"#]]
    .assert_eq(&problems.to_string());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("agent.toml");
    std::fs::write(&file, "site = \"a\"\n[webhooks]\nsecret_file = \"s\"").unwrap();
    std::fs::write(dir.path().join("s"), "a secret from a file\n").unwrap();
    let config = AgentConfig::load(&file, []).unwrap();
    assert_eq!(config.webhooks.secret, Some(Secret::new("a secret from a file").unwrap()));
}

#[test]
fn a_variable_that_names_no_setting_is_a_mistake_like_a_key_that_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.toml");
    std::fs::write(&file, "site = \"a\"\n").unwrap();
    let load = |variables: &[(&str, &str)]| {
        let owned = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        AgentConfig::load(&file, owned.collect::<Vec<_>>())
            .map_err(|problems| problems.to_string().replace(folder.path().to_str().unwrap(), ""))
    };
    let said = load(&[
        ("CHEOPS_DATADIR", "/tmp"),
        ("CHEOPS_API_LISTEM", "127.0.0.1:1"),
        ("CHEOPS_LOG_LEVEL", "inf"),
    ]);
    expect![[r"
        the config `/agent.toml` cannot be used, for 3 reasons:
        environment variable CHEOPS_API_LISTEM: there is no such setting; did you mean `CHEOPS_API_LISTEN`?
        environment variable CHEOPS_DATADIR: there is no such setting; did you mean `CHEOPS_DATA_DIR`?
        environment variable CHEOPS_LOG_LEVEL: `log.level`: `inf` is unknown; did you mean `info`?"]]
    .assert_eq(&said.unwrap_err());

    // What is empty says nothing, and not everything with that beginning is about the agent.
    let config = load(&[
        ("CHEOPS_DATADIR", ""),
        ("CHEOPS_AGENT", "http://127.0.0.1:8079"),
        ("CHEOPS_RESOURCE", "x"),
        ("CHEOPS_E2E_LINKS", "relay"),
        ("CHEOPS_SERVICE_HOST", "10.0.0.1"),
        ("CHEOPS_SERVICE_PORT_API", "8079"),
        ("CHEOPS_PORT", "tcp://10.0.0.1:8079"),
        ("CHEOPS_PORT_8079_TCP_ADDR", "10.0.0.1"),
        ("PATH", "/bin"),
        ("CHEOPS_SITE", "b"),
    ]);
    assert_eq!(config.unwrap().site.as_str(), "b");
}

#[test]
fn history_may_be_kept_for_no_time_at_all() {
    let file = Path::new("cheops.toml");
    for (said, seconds) in [("0", 0), ("\"0\"", 0), ("\"0s\"", 0), ("\"0d\"", 0), ("\"1s\"", 1)] {
        let text = format!("site = \"paris\"\n[audit]\nretention = {said}");
        let config = AgentConfig::parse(&text, file, |_| None).unwrap();
        assert_eq!(config.audit.retention, Duration::from_secs(seconds), "{said}");
    }
    for said in ["\"0x\"", "\"\"", "\"s\"", "1"] {
        let text = format!("site = \"paris\"\n[audit]\nretention = {said}");
        assert!(AgentConfig::parse(&text, file, |_| None).is_err(), "{said}");
    }
}

#[test]
fn hooks_of_resources_may_go_nowhere_unless_the_file_says_so() {
    let file = Path::new("cheops.toml");
    let read =
        |more: &str| AgentConfig::parse(&format!("site = \"paris\"\n{more}"), file, |_| None);
    let covers =
        |config: AgentConfig, url| config.webhooks.allow.iter().any(|place| place.covers(url));
    assert!(!covers(read("").unwrap(), "https://ops.example/x"));
    let some = "[webhooks]\nallow = [\"https://ops.example\", \"http://10.0.0.1:8080/a\"]";
    assert!(covers(read(some).unwrap(), "https://ops.example/x"));
    assert!(covers(read(some).unwrap(), "http://10.0.0.1:8080/a/b"));
    assert!(!covers(read(some).unwrap(), "http://10.0.0.1:8080/b"));
    let problems = read("[webhooks]\nallow = [\"ops.example\"]").unwrap_err().to_string();
    assert!(problems.contains("webhooks.allow") && problems.contains("https://"), "{problems}");
}

#[test]
fn a_site_may_have_a_name_as_long_as_the_limit_and_no_longer_wherever_it_is_named() {
    let in_config = |name: &str| {
        let text = format!(
            "site = \"{name}\"\ndata_dir = \"d\"\n[[peers]]\nsite = \"x{}\"\naddress = \"h:1\"\n",
            &name[1..]
        );
        let problems = parse(&text, &[]).err().map(|problems| problems.to_string());
        problems.unwrap_or_default().lines().filter(|line| line.contains("has at most")).count()
    };
    let takes_part = |name: &str| {
        [
            SiteId::new(name).is_ok(),
            name.parse::<SiteId>().is_ok(),
            serde_json::from_str::<SiteId>(&format!("\"{name}\"")).is_ok(),
            format!("{name}-1.7").parse::<OperationId>().is_ok(),
            cheops_scope::parse(&format!("image: {name}")).is_ok(),
            cheops_scope::parse_location(name).is_ok(),
        ]
    };
    let (longest, too_long) = ("s".repeat(MAX_SITE_BYTES), "s".repeat(MAX_SITE_BYTES + 1));
    assert_eq!((takes_part(&longest), in_config(&longest)), ([true; 6], 0));
    assert_eq!((takes_part(&too_long), in_config(&too_long)), ([false; 6], 2));
}
