//! Scope-lang: the small language that says, per service, where a request runs.
//!
//! Text goes through three steps, each of which can be had by itself:
//!
//! 1. [`parse`]: text → a tree with spans ([`Scope`]); printing the tree gives the canonical text.
//! 2. [`resolve`]: text → a [`Placement`], what an agent executes. Names are looked up among what
//!    is [`Known`], and `around` becomes a chain of sites, nearest first.
//! 3. [`Placement::explain`]: the same in plain sentences, for people.
//!
//! A bad scope yields all its [`Problems`] at once, each with its position, what was found, what
//! was expected and a hint; they render with carets for terminals and serialise for programs.
//!
//! Nothing here reads a clock, a file or the network, and everything is bounded: see
//! [`MAX_SCOPE_BYTES`], [`MAX_SERVICE_BYTES`], [`MAX_SITE_BYTES`], [`MAX_DEPTH`], [`MAX_PROBLEMS`]
//! and [`MAX_STEPS`].
//!
//! ```
//! use cheops_scope::{Known, ServiceName, SiteId, parse, resolve};
//!
//! let scope = parse("image: paris&lyon")?;
//! assert_eq!(scope.to_string(), "{image: paris & lyon}");
//!
//! let known = Known::new(
//!     [ServiceName::new("image")?],
//!     [SiteId::new("paris")?, SiteId::new("lyon")?],
//! );
//! let placement = resolve("image: paris & lyon", &known)?;
//! assert_eq!(
//!     placement.explain(),
//!     "image: on paris and lyon, kept the same (replication)",
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod around;
mod ast;
mod check;
mod entry;
mod explain;
mod known;
mod lexer;
mod micros;
mod name;
mod parser;
mod placement;
mod print;
mod problem;
mod render;
mod resolve;
mod span;
mod suggest;

pub use around::MAX_STEPS;
pub use ast::{Binding, Consistency, Location, LocationKind, LocationOptions, Scope};
pub use entry::{MAX_SCOPE_BYTES, parse, parse_location, resolve, resolve_location};
pub use known::{Known, RoundTrips};
pub use micros::{BadDuration, Micros};
pub use name::{BadName, MAX_SERVICE_BYTES, MAX_SITE_BYTES, ServiceName, SiteId};
pub use parser::MAX_DEPTH;
pub use placement::{NearSite, Nearby, Placement, ServicePlacement, Target};
pub use problem::{Code, MAX_PROBLEMS, Problems, Related, ScopeProblem};
pub use render::Look;
pub use span::{SourcePosition, Span, Spanned};
