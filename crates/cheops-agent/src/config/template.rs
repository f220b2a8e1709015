//! The commented file to start from.

use std::path::Path;

use cheops_core::model::SiteId;

use super::AgentConfig;

impl AgentConfig {
    /// A config file for a site, to be completed: what `cheops init` writes. The identity is the
    /// file that `cheops mesh issue` wrote, as the config is to name it.
    pub fn template(site: &SiteId, identity: Option<&Path>) -> String {
        let identity =
            identity.map_or_else(|| format!("{site}.pem"), |path| path.display().to_string());
        TEMPLATE.replace("@SITE@", &quoted(site.as_str())).replace("@IDENTITY@", &quoted(&identity))
    }
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

const TEMPLATE: &str = r#"# The agent of one site. Start it with: cheops agent --config FILE
#
# Paths start from this file's folder. Each setting outside of lists can also be given as a variable
# of the environment, such as CHEOPS_DATA_DIR or CHEOPS_API_LISTEN, which then counts.

# The name of this site, the same as in its certificate.
site = @SITE@

# Where this site keeps its log and its files. One agent at a time.
data_dir = "cheops-data"

# What the application may hold when this data directory is new: "may-hold-state", or "empty" if it
# starts from nothing as well.
# application = "may-hold-state"

# People and programs: API, UI, metrics. Whoever is let in can run commands here: who may open the
# socket, and who has the token.
[api]
listen = "127.0.0.1:8079"       # beyond loopback only with tls
# socket = "cheops-data/api.sock"   # mode 0660: for this user and group, and root; or "off"
# token_file = "cheops-data/api.token"   # mode 0600; made at the first start
# auth = "none"                 # no token: any user of this machine is let in; on loopback only
# tls = "api.pem"               # the certificate and its key
# metrics = "open"              # /metrics without a token
# connections_per_address = 256

# The other sites: QUIC (UDP), always with certificates on both sides.
[mesh]
listen = "0.0.0.0:8078"         # "[::]:8078" reaches, and is reached by, IPv6 as well
# advertise = "10.0.0.1:8078"   # where the others find this site, if not at the address above
identity = @IDENTITY@           # from: cheops mesh issue

# One for each other site.
# [[peers]]
# site = "site2"
# address = "10.0.0.2:8078"     # or a name: "site2.example:8078"

# One for each service of the application.
# [[services]]
# name = "image"
# listen = "127.0.0.1:19292"    # the proxy: clients and the other services use this address
# upstream = "http://127.0.0.1:9292"
# offer = true                  # to other sites; if nothing is said, a service that has a proxy is
# hosts = ["image.example"]     # by which clients may ask for it; any, if nothing is said
# origins = ["https://ui.example"]   # pages that may; any, if nothing is said
# trust_correlation = false     # true: ids that clients choose count whoever brings them
# id = "/id"                    # where the id of a new resource is, if not where it usually is
# client_chosen_id = "/id"      # where a POST may bring an id: then all sites use the same
# collections = ["/v1/albums/*/photos"]   # below a resource, but resources of their own
# already = { done = [409], gone = [404, 410] }   # answers to a repeated request that mean: it is so
# cross = { divide = ["/capacity"] }   # what is divided over sites by `%`; see docs/services.md

# How requests to services pass through.
[proxy]
# answer_limit = "5m"           # for a service to begin its answer
# remember = "15m"              # how long the calls a service makes for a request are known again
# correlation_headers = ["X-Correlation-ID"]   # where services name the request they work on, beside
#                               # X-OpenStack-Request-ID, traceparent, X-Request-ID and B3
# unsigned_cross_ids = false    # true: ids of resources over sites that an earlier version made count

# How commands run, and requests that are operations (those by proxies have answer_limit).
[shell]
# time_limit = "60s"
# output_limit = "64KiB"
# jobs_at_once = 64             # and as many reading commands (cheops show) beside them
# directory = "."               # default: where the agent was started
# verify_every = "10m"          # how often the states of resources that say how are read and compared,
#                               # with a fiftieth of the time at most
# short_history = 1000          # from so many operations of a resource on a state that all sites verified
#                               # stands for them, and they are forgotten

# The site's programs that decide about operations made concurrently, where a matrix says
# logic:exec:NAME. The same program at every site; see docs/consistency.md.
[logic]
# shopping = "python3 /srv/logic/shopping.py"   # run where commands are

# How long history that no longer counts can be looked at.
[audit]
# retention = "7d"
# size = "1GiB"                 # beyond that the oldest goes earlier, and it is said

[log]
# level = "info"                # error, warn, info, debug, trace
# format = "text"               # or "json"

# Spans for a collector, if the program was built for it: `[telemetry]`, see docs/operating.md.

# What is told to whom, whatever the resource; see docs/hooks.md.
# [[hooks]]
# on = "partial-error"          # applied, failed, partial-error, superseded, diverged, in-doubt,
#                               # converged, site-down, site-up
# url = "https://ops.example/cheops"   # or: command = "logger -t cheops"
# run = "once"                  # or "each-site"
# types = ["set"]               # only for operations of these types
# resources = ["image/*"]       # only for these resources

# How web hooks are delivered.
[webhooks]
# secret_file = "webhooks.secret"   # deliveries are signed with it; at least 16 bytes
# time_limit = "10s"
# attempts = 5
# allow = ["https://ops.example"]   # where hooks that come with a resource may go; default: nowhere
"#;

#[cfg(test)]
mod tests {
    use super::super::WebhooksConfig;
    use super::*;

    fn parse(text: &str) -> AgentConfig {
        let parsed = AgentConfig::parse(text, Path::new("x/cheops.toml"), |_| None);
        parsed.unwrap_or_else(|problems| panic!("{problems}"))
    }

    #[test]
    fn the_file_to_start_from_is_valid_and_says_the_defaults() {
        let site = SiteId::new("paris").unwrap();
        let text = AgentConfig::template(&site, Some(Path::new("a \"b\".pem")));
        let config = parse(&text);
        assert_eq!(config.site, site);
        assert_eq!(config.mesh.as_ref().unwrap().identity, Path::new("x/a \"b\".pem"));
        let bare = parse("site = \"paris\"\n[mesh]\nidentity = \"a \\\"b\\\".pem\"");
        assert_eq!(config, bare);
    }

    #[test]
    fn what_is_commented_out_is_valid_too() {
        let text = AgentConfig::template(&SiteId::new("paris").unwrap(), None);
        let settings = |line: &str| {
            let said = line.strip_prefix("# ")?;
            let is_setting = said.starts_with("[[")
                || said.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
            is_setting.then(|| said.to_owned())
        };
        let all = text.lines().map(|line| settings(line).unwrap_or_else(|| line.to_owned()));
        let all: Vec<_> = all.filter(|line| !line.starts_with("secret_file")).collect();
        let config = parse(&all.join("\n"));
        let counts = (config.peers.len(), config.services.len(), config.hooks.len());
        assert_eq!(counts, (1, 1, 1));
        let bare = parse(&text);
        assert_eq!((config.audit, config.log), (bare.audit, bare.log));
        let webhooks = WebhooksConfig { allow: Vec::new(), ..config.webhooks };
        assert_eq!(webhooks, bare.webhooks);
        assert_eq!(config.shell.time_limit, bare.shell.time_limit);
        assert_eq!((config.logic.len(), bare.logic.len()), (1, 0));
    }
}
