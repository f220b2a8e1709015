//! A site that lies. It has a real engine and its own key, and nobody else's: it plays along, and
//! now and then sends something that its engine would never send.

use std::sync::Arc;

use cheops_core::engine::{Base, Message, Sealer, Update};
use cheops_core::model::{
    Author, Declaration, Entry, EntryBody, EntryHash, EntryId, Incarnation, Operation, OperationId,
    OperationType, Payload, Proof, Replaces, Reply, ResourceId, SignedBy, SiteId, Stamp, Status,
    Vector,
};

use crate::keys::SimKey;
use crate::rng::Rng;

/// What it can do beside playing along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiarMove {
    /// Writes in the name of another site.
    ForgesAuthor,
    /// Uses up its own numbers, and tries to use up those of another.
    UsesUpNumbers,
    /// Claims the last stamp that there is, and one beyond it.
    ClaimsEndOfTime,
    /// Says of an operation that another site failed or succeeded.
    ForgesReply,
    /// Tells one site this and the other that, under one name.
    Equivocates,
    /// Sends what it once heard, again and out of turn.
    Replays,
    /// Sends more than anybody may.
    Oversizes,
    /// Says that everything may be forgotten.
    ClaimsBase,
    /// Says that it, and the listener's earlier incarnation, know everything there ever will be.
    ClaimsKnowledge,
    /// Vouches for an entry of another site that was never written.
    Vouches,
    /// Declares that the resource lives elsewhere too.
    Declares,
    /// Makes the resource anew, as if it had lost its disk, long ago and with fewer sites.
    MakesAnew,
    /// Writes an operation that needs what never was.
    NeedsNothingThatIs,
    /// Sends a lot that would wait for ever.
    Floods,
    /// Uses a number that it has used on another resource.
    UsesNumberTwice,
    /// Writes in more incarnations than a site may, each of which might be after a lost disk.
    IsManyAtOnce,
}

impl LiarMove {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::MakesAnew,
        Self::NeedsNothingThatIs,
        Self::ForgesAuthor,
        Self::UsesUpNumbers,
        Self::ClaimsEndOfTime,
        Self::ForgesReply,
        Self::Equivocates,
        Self::Replays,
        Self::Oversizes,
        Self::ClaimsBase,
        Self::ClaimsKnowledge,
        Self::Vouches,
        Self::Declares,
        Self::Floods,
        Self::UsesNumberTwice,
        Self::IsManyAtOnce,
    ];

    /// Its name on the list of what must happen.
    pub fn saw(self) -> &'static str {
        match self {
            Self::ForgesAuthor => "liar: wrote in another's name",
            Self::UsesUpNumbers => "liar: used up numbers",
            Self::ClaimsEndOfTime => "liar: claimed the end of time",
            Self::ForgesReply => "liar: forged a reply",
            Self::Equivocates => "liar: told two things under one name",
            Self::Replays => "liar: replayed",
            Self::Oversizes => "liar: sent too much",
            Self::ClaimsBase => "liar: said that all may be forgotten",
            Self::ClaimsKnowledge => "liar: claimed to know everything",
            Self::Vouches => "liar: vouched for what never was",
            Self::Declares => "liar: moved a resource",
            Self::MakesAnew => "liar: made a resource anew",
            Self::NeedsNothingThatIs => "liar: needed what never was",
            Self::Floods => "liar: sent what would wait for ever",
            Self::UsesNumberTwice => "liar: used one number on two resources",
            Self::IsManyAtOnce => "liar: wrote in too many incarnations",
        }
    }
}

/// What a liar knows of a resource when it makes something up.
#[derive(Debug)]
pub struct Stolen<'a> {
    /// Who lies.
    pub liar: &'a Author,
    /// The resource.
    pub resource: &'a ResourceId,
    /// Where it lives.
    pub sites: Vec<SiteId>,
    /// What the liar's engine knows of it, and the hash of its own last entry there.
    pub knows: Vector,
    /// The hash of its own last entry there.
    pub last_hash: EntryHash,
    /// The last number that it used on another resource.
    pub used_elsewhere: u64,
    /// Operations it may speak of.
    pub operations: Vec<Arc<Operation>>,
    /// Something it heard before.
    pub heard: Vec<Arc<Entry>>,
}

/// What is sent to whom.
pub(crate) type Lies = Vec<(SiteId, Message)>;

impl Stolen<'_> {
    /// Makes something up.
    pub(crate) fn lie(&self, lie: LiarMove, rng: &mut Rng) -> Lies {
        let others: Vec<SiteId> =
            self.sites.iter().filter(|site| **site != self.liar.site).cloned().collect();
        if others.is_empty() {
            return Vec::new();
        }
        let victim = rng.pick(&others).clone();
        let all = |entries: Vec<Entry>| {
            let message = self.update(entries);
            others.iter().map(|to| (to.clone(), message.clone())).collect::<Lies>()
        };
        let own = self.knows.last_of(self.liar);
        let after = (own, self.last_hash);
        let next = own + 1 + rng.below(3);
        match lie {
            LiarMove::ForgesAuthor => {
                let author = self.author_of(&victim);
                let last = self.knows.last_of(&author);
                let forged = self.operation(&author, last + 1, (last, EntryHash::UNSAID), rng);
                all(vec![self.signed(forged)])
            }
            LiarMove::UsesUpNumbers => {
                let author = self.author_of(&victim);
                let last = self.knows.last_of(&author);
                let huge = u64::MAX / 2 - rng.below(2);
                let muting = self.operation(&author, huge, (last, EntryHash::UNSAID), rng);
                all(vec![self.signed(muting)])
            }
            LiarMove::ClaimsEndOfTime => {
                let stamps = [
                    Stamp { wall_ms: (1 << 48) - 1, counter: u64::from(u32::MAX) },
                    Stamp { wall_ms: u64::MAX / 2, counter: 0 },
                    Stamp { wall_ms: u64::MAX, counter: u64::MAX },
                ];
                let claimed = *rng.pick(&stamps);
                let mut operation = self.plain(self.liar, next, rng);
                (operation.claimed, operation.stamp) = (claimed, claimed);
                let entry =
                    Entry::new(self.resource, after, EntryBody::Operation(operation), Vec::new());
                all(vec![self.signed(entry)])
            }
            LiarMove::ForgesReply => {
                let Some(about) = self.operations.last() else { return Vec::new() };
                let author = self.author_of(&victim);
                let last = self.knows.last_of(&author);
                let reply = Reply {
                    id: EntryId { author, n: last + 1 },
                    stamp: about.claimed,
                    operation: about.id.clone(),
                    status: if rng.chance(500) { Status::Ok } else { Status::Ko },
                    outcome: None,
                };
                let after = (last, EntryHash::UNSAID);
                let entry = Entry::new(self.resource, after, EntryBody::Reply(reply), Vec::new());
                all(vec![self.signed(entry)])
            }
            LiarMove::Equivocates => {
                // Each of the others hears something else, and perhaps under another number.
                let entry = |to: SiteId, rng: &mut Rng| {
                    let n = if rng.chance(700) { next } else { next + 1 + rng.below(4) };
                    let entry = self.signed(self.operation(self.liar, n, after, rng));
                    (to, self.update(vec![entry]))
                };
                others.iter().map(|to| entry(to.clone(), rng)).collect()
            }
            LiarMove::Replays => {
                let mut entries: Vec<Entry> = Vec::new();
                for _ in 0..rng.between(1, 6) {
                    if !self.heard.is_empty() {
                        entries.push(Entry::clone(rng.pick::<Arc<Entry>>(&self.heard)));
                    }
                }
                all(entries)
            }
            LiarMove::Oversizes => {
                let count = rng.between(1_025, 1_100);
                let mut after = after;
                let mut entries = Vec::new();
                for n in 0..count {
                    let entry = self.signed(self.operation(self.liar, next + n, after, rng));
                    // With holes, so that they would wait for ever.
                    after = (next + n + 1, entry.hash());
                    entries.push(entry);
                }
                vec![(victim, self.update(entries))]
            }
            LiarMove::Floods => {
                let floods = (0..rng.between(20, 60)).map(|n| {
                    // Each after one that nobody ever wrote.
                    let after = next + 2 * n + 1;
                    let after = (after, EntryHash([7; 32]));
                    self.signed(self.operation(self.liar, after.0 + 1, after, rng))
                });
                all(floods.collect())
            }
            LiarMove::UsesNumberTwice => {
                if self.used_elsewhere <= own {
                    return Vec::new();
                }
                all(vec![self.signed(self.operation(self.liar, self.used_elsewhere, after, rng))])
            }
            LiarMove::ClaimsBase => {
                let mut message = self.update(Vec::new());
                if let Message::Update(update) = &mut message {
                    let mut upto = self.knows.clone();
                    let author = self.author_of(&victim);
                    upto.add(&EntryId { n: self.knows.last_of(&author) + 5, author });
                    update.knows.join(&upto);
                    let (chain, order) = (Default::default(), None);
                    update.base = Some(Base { upto, declared: None, chain, order, state: None });
                }
                others.iter().map(|to| (to.clone(), message.clone())).collect()
            }
            LiarMove::ClaimsKnowledge => {
                let mut message = self.update(Vec::new());
                if let Message::Update(update) = &mut message {
                    let author = self.author_of(&victim);
                    update.knows.add(&EntryId { author: author.clone(), n: u64::MAX / 2 });
                    update.you_may_have_run.add(&EntryId { author, n: u64::MAX / 2 });
                }
                vec![(victim, message)]
            }
            LiarMove::Vouches => {
                let author = self.author_of(&victim);
                let last = self.knows.last_of(&author);
                let entry = self.operation(&author, last + 1, (last, EntryHash::UNSAID), rng);
                SimKey::of(&self.liar.site).vouch(&self.liar.site, &entry);
                all(vec![entry])
            }
            LiarMove::Declares => {
                let mut operation = self.plain(self.liar, next, rng);
                operation.parents =
                    self.operations.last().map(|it| it.id.clone()).into_iter().collect();
                let sites = self.sites.iter().cloned().chain(SiteId::new("nowhere").ok()).collect();
                operation.declares = Some(Arc::new(Declaration { sites, config: None }));
                let entry =
                    Entry::new(self.resource, after, EntryBody::Operation(operation), Vec::new());
                all(vec![self.signed(entry)])
            }
            LiarMove::IsManyAtOnce => {
                let many = rng.between(50, 90);
                let entries: Vec<Entry> = (0..many)
                    .map(|_| self.operation(&self.reborn(rng), 1, (0, EntryHash::UNSAID), rng))
                    .map(|entry| self.signed(entry))
                    .collect();
                // Nobody hears of all of them from the liar.
                let told = |to: &SiteId, rng: &mut Rng| {
                    let some = entries.iter().filter(|_| rng.chance(800)).cloned().collect();
                    (to.clone(), self.update(some))
                };
                others.iter().map(|to| told(to, rng)).collect()
            }
            LiarMove::MakesAnew => {
                let reborn = self.reborn(rng);
                let mut operation = self.plain(&reborn, 1, rng);
                let sites = self.sites.iter().filter(|site| **site != victim || rng.chance(500));
                let sites = sites.cloned().collect();
                operation.claimed = Stamp { wall_ms: rng.below(1_000), counter: 0 };
                operation.declares = Some(Arc::new(Declaration { sites, config: None }));
                let first = (0, EntryHash::UNSAID);
                let entry =
                    Entry::new(self.resource, first, EntryBody::Operation(operation), Vec::new());
                all(vec![self.signed(entry)])
            }
            LiarMove::NeedsNothingThatIs => {
                let mut operation = self.plain(self.liar, next, rng);
                operation.parents =
                    self.operations.last().map(|it| it.id.clone()).into_iter().collect();
                operation.declares = None;
                // Where it fails for want of that, it changes nothing; nor may it elsewhere.
                operation.payload = Payload::shell("fail");
                operation.needs = ResourceId::new("never-made").into_iter().collect();
                let entry =
                    Entry::new(self.resource, after, EntryBody::Operation(operation), Vec::new());
                all(vec![self.signed(entry)])
            }
        }
    }

    /// The name under which a site is known to write, or one made up.
    fn author_of(&self, site: &SiteId) -> Author {
        let known = self.knows.iter().map(|(author, _)| author).find(|it| it.site == *site);
        let made_up = || Author { site: site.clone(), incarnation: Incarnation::drawn(7) };
        known.cloned().unwrap_or_else(made_up)
    }

    /// The liar, as if it had lost its disk.
    fn reborn(&self, rng: &mut Rng) -> Author {
        let incarnation = Incarnation::drawn(rng.below(1 << 30));
        Author { site: self.liar.site.clone(), incarnation }
    }

    fn plain(&self, author: &Author, n: u64, rng: &mut Rng) -> Operation {
        let claimed = Stamp { wall_ms: 1_760_000_000_000 + rng.below(100_000), counter: 0 };
        // Of the same kind as what users do, so that its command does what the matrix says.
        let like = (!self.operations.is_empty()).then(|| rng.pick(&self.operations));
        let nothing = || Payload::shell("fail");
        Operation {
            id: OperationId(EntryId { author: author.clone(), n }),
            resource: self.resource.clone(),
            stamp: claimed,
            claimed,
            parents: Vec::new(),
            kind: like.map_or_else(OperationType::deletion, |like| like.kind.clone()),
            payload: like.map_or_else(nothing, |like| like.payload.clone()),
            replaces: Replaces::Nothing,
            declares: Some(Arc::new(Declaration {
                sites: self.sites.iter().cloned().collect(),
                config: None,
            })),
            needs: Default::default(),
            asked_by: None,
        }
    }

    fn operation(&self, author: &Author, n: u64, after: (u64, EntryHash), rng: &mut Rng) -> Entry {
        let operation = self.plain(author, n, rng);
        Entry::new(self.resource, after, EntryBody::Operation(operation), Vec::new())
    }

    fn signed(&self, entry: Entry) -> Entry {
        SimKey::of(&self.liar.site).seal(&[&entry]);
        entry
    }

    fn update(&self, entries: Vec<Entry>) -> Message {
        let mut knows = self.knows.clone();
        entries.iter().for_each(|entry| knows.add(entry.id()));
        Message::Update(Box::new(Update {
            incarnation: self.liar.incarnation,
            resource: self.resource.clone(),
            base: None,
            entries: entries.into_iter().map(Arc::new).collect(),
            knows,
            chain: Default::default(),
            you_may_have_run: Vector::default(),
            asks: false,
        }))
    }
}

impl SimKey {
    /// Vouches, as that site, for an entry that somebody else is said to have written.
    pub fn vouch(&self, site: &SiteId, entry: &Entry) {
        let by = SignedBy::Voucher(site.clone());
        let Some(tree) = cheops_core::model::SealTree::over(by, [entry.hash()]) else { return };
        let signature: Arc<[u8]> = Arc::from(self.sign(&tree.root()).as_slice());
        let proof: Proof = tree.proof(0, self.id(), &signature);
        entry.seal(proof);
    }
}
