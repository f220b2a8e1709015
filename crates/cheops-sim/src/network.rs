//! The network between sites: delays as between real cities, and everything that can go wrong.

use std::collections::BTreeSet;

use cheops_core::model::SiteId;

use crate::rng::Rng;

/// Cities whose names the sites take.
pub const CITIES: [&str; 8] =
    ["paris", "lyon", "nantes", "london", "newyork", "saopaulo", "tokyo", "sydney"];

/// Typical round-trip times between those cities over the public internet, in milliseconds.
const ROUND_TRIPS_MS: [[u64; 8]; 8] = [
    [0, 7, 9, 9, 77, 191, 218, 277],
    [7, 0, 13, 15, 83, 197, 224, 283],
    [9, 13, 0, 16, 85, 199, 227, 286],
    [9, 15, 16, 0, 71, 188, 211, 265],
    [77, 83, 85, 71, 0, 118, 167, 203],
    [191, 197, 199, 188, 118, 0, 269, 316],
    [218, 224, 227, 211, 167, 269, 0, 104],
    [277, 283, 286, 265, 203, 316, 104, 0],
];

/// How bad the network is, in thousandths.
#[derive(Debug, Clone, Copy, Default)]
pub struct Weather {
    /// Messages that never arrive.
    pub loss: u64,
    /// Messages that arrive twice.
    pub duplication: u64,
    /// Messages that take up to ten times as long, and so overtake or are overtaken.
    pub reordering: u64,
}

/// The links between sites. A cut is one-way: both ways are two cuts.
#[derive(Debug, Default)]
pub struct Network {
    cuts: BTreeSet<(usize, usize)>,
    /// How bad it is.
    pub weather: Weather,
    /// Messages sent.
    pub messages: u64,
}

impl Network {
    /// Cuts one direction.
    pub fn cut(&mut self, from: usize, to: usize) {
        self.cuts.insert((from, to));
    }

    /// Heals one direction.
    pub fn heal(&mut self, from: usize, to: usize) {
        self.cuts.remove(&(from, to));
    }

    /// Heals everything.
    pub fn heal_all(&mut self) {
        self.cuts.clear();
    }

    /// Whether messages in that direction are dropped.
    pub fn is_cut(&self, from: usize, to: usize) -> bool {
        self.cuts.contains(&(from, to))
    }

    /// When copies of a message arrive after it was sent: none, one, or two of them.
    pub fn delays_ms(&mut self, from: usize, to: usize, rng: &mut Rng) -> Vec<u64> {
        self.messages += 1;
        if self.is_cut(from, to) || rng.chance(self.weather.loss) {
            return Vec::new();
        }
        let copies = if rng.chance(self.weather.duplication) { 2 } else { 1 };
        (0..copies).map(|_| self.delay_ms(from, to, rng)).collect()
    }

    fn delay_ms(&self, from: usize, to: usize, rng: &mut Rng) -> u64 {
        let one_way = ROUND_TRIPS_MS[from % 8][to % 8].div_ceil(2).max(1);
        let jitter = rng.below(1 + one_way / 5);
        let factor = if rng.chance(self.weather.reordering) { rng.between(2, 10) } else { 1 };
        (one_way + jitter) * factor
    }
}

/// The name of the how-manieth site.
pub fn site_name(index: usize) -> SiteId {
    let city = CITIES[index % CITIES.len()];
    let name = match index / CITIES.len() {
        0 => city.to_owned(),
        more => format!("{city}{more}"),
    };
    #[allow(clippy::expect_used, reason = "built from letters and digits")]
    SiteId::new(&name).expect("a city's name is a site's name")
}
