//! Planning, against a small interpreted application: whatever arrives, crashes and runs, the
//! state is that of a fresh run of the list, or the site says that it is not.

mod app;
mod endings;
mod examples;
mod properties;
mod setup;
mod site;
mod sites;
