//! What readers see of an engine: plain values, made on request, of no use to decide on.

use std::collections::BTreeSet;

use super::Engine;
use super::resource::Resource;
use crate::model::{OperationId, Outcome, Position, ResourceId, SiteId, Status, Vector};
use crate::plan::Health;
use crate::resolve::{Explanation, LeftOut, explain};

/// Another site, as this one sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteView {
    /// Which.
    pub site: SiteId,
    /// Up or down, since when, last heard when (by the monotonic clock).
    pub status: SiteStatus,
    /// The round trip, if one was measured.
    pub round_trip_ms: Option<u64>,
    /// Resources it shares with this site.
    pub shared: usize,
    /// Resources of which it is not known to know everything.
    pub behind_on: usize,
}

/// Never more than what was really heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SiteStatus {
    /// Nothing was ever heard of it in this run.
    NeverHeard,
    /// It is heard.
    Up {
        /// Since when.
        since_ms: u64,
    },
    /// It is not heard; what it does is unknown since it was last heard.
    Unknown {
        /// When it was last heard.
        since_ms: u64,
    },
}

/// A resource, as this site knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceView {
    /// Which.
    pub id: ResourceId,
    /// Where it lives.
    pub sites: BTreeSet<SiteId>,
    /// What runs, in order.
    pub list: Vec<OperationId>,
    /// All operations known and not pruned, in total order.
    pub operations: Vec<OperationView>,
    /// Everything known, pruned or not.
    pub knows: Vector,
    /// What was pruned.
    pub pruned: Vector,
    /// Whether this site's application follows the list.
    pub health: Health,
    /// What this site is doing about it.
    pub progress: Progress,
    /// Whether every site is known to know everything, and this one has run all of it.
    pub converged: bool,
}

/// Where a site stands with running the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Nothing is left to run.
    Idle,
    /// Something runs, or waits for a place.
    Running,
    /// Waits for the operator's word on an operation in doubt.
    AwaitsOperator(OperationId),
}

/// An operation with what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationView {
    /// Which.
    pub id: OperationId,
    /// Its place in the total order.
    pub position: Position,
    /// Its type.
    pub kind: String,
    /// What it does, in a line.
    pub summary: String,
    /// Why it is not in the list, if it is not.
    pub left_out: Option<LeftOut>,
    /// The last word of each site that replied.
    pub replies: Vec<(SiteId, Status, Option<Outcome>)>,
}

impl Engine {
    /// The resources this site holds.
    pub fn resources(&self) -> impl Iterator<Item = &ResourceId> {
        self.resources.keys()
    }

    /// One resource.
    pub fn resource(&self, id: &ResourceId) -> Option<ResourceView> {
        self.resources.get(id).map(view)
    }

    /// Why a resource's list is what it is.
    pub fn explain(&self, id: &ResourceId) -> Option<Explanation> {
        let resource = self.resources.get(id)?;
        Some(explain(resource.resolution.operations(), &resource.config()))
    }

    /// The other sites.
    pub fn sites(&self) -> Vec<SiteView> {
        let links = self.context.links.iter();
        links
            .map(|(site, link)| SiteView {
                site: site.clone(),
                status: match (link.heard_ms, link.up) {
                    (None, _) => SiteStatus::NeverHeard,
                    (Some(_), true) => SiteStatus::Up { since_ms: link.since_ms },
                    (Some(heard), false) => SiteStatus::Unknown { since_ms: heard },
                },
                round_trip_ms: link.round_trip_ms,
                shared: link.shared,
                behind_on: link.behind.len(),
            })
            .collect()
    }

    /// How many entries of a resource that site is not known to know.
    pub fn behind(&self, resource: &ResourceId, site: &SiteId) -> Option<u64> {
        let resource = self.resources.get(resource)?;
        let peer = resource.peers.get(site)?;
        Some(resource.count_lacking(&peer.knows))
    }

    /// What every site of the resource is known to know, if that can be told.
    pub fn stable(&self, resource: &ResourceId) -> Option<Vector> {
        self.resources.get(resource).map(Resource::stable)
    }
}

fn view(resource: &Resource) -> ResourceView {
    let mut operations: Vec<_> = resource
        .resolution
        .operations()
        .iter()
        .map(|operation| operation_view(resource, operation))
        .collect();
    operations.sort_by(|a, b| a.position.cmp(&b.position));
    let idle = resource.runs.is_idle();
    ResourceView {
        id: resource.id.clone(),
        sites: resource.declared.sites.clone(),
        list: resource.resolution.list().cloned().collect(),
        operations,
        knows: resource.knows.clone(),
        pruned: resource.base.clone(),
        health: resource.runs.health.clone(),
        progress: match &resource.runs.awaits_operator {
            Some(operation) => Progress::AwaitsOperator(operation.clone()),
            None if idle => Progress::Idle,
            None => Progress::Running,
        },
        converged: idle && resource.peers.values().all(|peer| peer.knows.covers(&resource.knows)),
    }
}

fn operation_view(resource: &Resource, operation: &crate::model::Operation) -> OperationView {
    let replies = resource.replies.get(&operation.id);
    let last_words = resource.declared.sites.iter().filter_map(|site| {
        let reply = replies?.of(site)?;
        Some((site.clone(), reply.status.clone(), reply.outcome.clone()))
    });
    OperationView {
        id: operation.id.clone(),
        position: operation.position(),
        kind: operation.kind.to_string(),
        summary: operation.payload.summary(),
        left_out: resource.resolution.left_out(&operation.id),
        replies: last_words.collect(),
    }
}
