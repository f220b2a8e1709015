//! What `resolve` must give: the report's figures and experiments, every row of the rules, and for
//! anything else the definition, spelled out a second time.

mod figures;
mod large;
mod oracle;
mod outcomes;
mod properties;
mod rules;
mod scripts;
mod world;
