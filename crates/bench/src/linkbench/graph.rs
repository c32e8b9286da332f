//! Which nodes and links there are, and which of them operations pick. Nothing is stored: a node's number of links
//! follows from its id, and the ids of its links are the ids that follow its own.

use super::degrees::links_of_rank;
use super::shuffle::Shuffle;
use super::zipf::Zipf;
use crate::random::Random;

/// Link types, each with half of a node's links; numbered from [`FIRST_TYPE`] on.
pub const TYPES: u64 = 2;
/// The first link type.
pub const FIRST_TYPE: u64 = 123_456_789;
/// The type of all nodes.
pub const NODE_TYPE: u32 = 2048;

/// With what probability the link that an operation picks is one that was loaded.
pub const EXISTS_FOR_ADD: f64 = 0.05;
/// See [`EXISTS_FOR_ADD`].
pub const EXISTS_FOR_CHANGE: f64 = 0.9;
/// See [`EXISTS_FOR_ADD`].
pub const EXISTS_FOR_GET: f64 = 0.5;

/// How often a new id is drawn, where ids should be different, before a double is accepted.
const DRAWS: usize = 100;
/// Links of one request are fewer than this.
const MULTIGET_LIMIT: u64 = 128;
/// Each further link of one request is asked for with the probability 1 - this, which makes 2.6 of them in the mean.
const MULTIGET_END: f64 = 0.382;

/// The graph with ids 1 to `nodes`, and how its ids are accessed.
#[derive(Clone, Debug)]
pub struct Graph {
    nodes: u64,
    /// Ranks by number of links, also used for the few accesses that are correlated with it.
    by_degree: Shuffle,
    /// Ranks by accesses to links that have nothing to do with the number of links.
    by_access: Shuffle,
    by_node_access: Shuffle,
    link_reads: Zipf,
    link_writes: Zipf,
    node_reads: Zipf,
    node_updates: Zipf,
}

impl Graph {
    /// A graph of `nodes` nodes, at least 1. The shapes of the power laws are those of LinkBench's default workload.
    pub fn new(nodes: u64) -> Graph {
        Graph {
            nodes,
            by_degree: Shuffle::new(1, nodes),
            by_access: Shuffle::new(2, nodes),
            by_node_access: Shuffle::new(3, nodes),
            link_reads: Zipf::new(nodes, 0.8),
            link_writes: Zipf::new(nodes, 0.741),
            node_reads: Zipf::new(nodes, 0.625),
            node_updates: Zipf::new(nodes, 0.606),
        }
    }

    /// How many nodes are loaded.
    pub fn nodes(&self) -> u64 {
        self.nodes
    }

    /// How many links of type [`FIRST_TYPE`] + `kind` are loaded for node `id`; their ids are `id`, `id + 1` and so on.
    pub fn links(&self, id: u64, kind: u64) -> u64 {
        let all = links_of_rank(self.by_degree.inverse(id - 1), self.nodes);
        all / TYPES + u64::from(kind < all % TYPES)
    }

    /// The node whose links are read: 0.5 % of the reads prefer nodes with many links, to keep lists as short as
    /// observed.
    pub fn link_read(&self, random: &mut Random) -> u64 {
        self.link_access(&self.link_reads, 0.995, random)
    }

    /// The node whose links are written: 5 % of the writes prefer nodes with many links.
    pub fn link_write(&self, random: &mut Random) -> u64 {
        self.link_access(&self.link_writes, 0.95, random)
    }

    fn link_access(&self, zipf: &Zipf, uncorrelated: f64, random: &mut Random) -> u64 {
        let shuffle = if random.fraction() < uncorrelated { &self.by_access } else { &self.by_degree };
        1 + shuffle.forward(zipf.draw(random))
    }

    /// The node to read.
    pub fn node_read(&self, random: &mut Random) -> u64 {
        1 + self.by_node_access.forward(self.node_reads.draw(random))
    }

    /// The node to update.
    pub fn node_update(&self, random: &mut Random) -> u64 {
        1 + self.by_node_access.forward(self.node_updates.draw(random))
    }

    /// The node to delete: any, since each can be deleted once only.
    pub fn node_delete(&self, random: &mut Random) -> u64 {
        1 + random.below(self.nodes)
    }

    /// The other end of a link of `id`, one that was loaded with the probability `exists`.
    pub fn other_end(&self, id: u64, kind: u64, exists: f64, random: &mut Random) -> u64 {
        id + random.below(self.range(id, kind, exists))
    }

    /// Other ends for one request of several links, all different if there are enough.
    pub fn other_ends(&self, id: u64, kind: u64, random: &mut Random) -> Vec<u64> {
        let more = ((1.0 - random.fraction()).ln() / (1.0 - MULTIGET_END).ln()).floor() as u64;
        let count = 1 + more.min(MULTIGET_LIMIT - 2);
        let range = self.range(id, kind, EXISTS_FOR_GET);
        if range <= count {
            return (id..id + count).collect();
        }
        let mut ends = Vec::new();
        for _ in 0..count {
            let mut end = id + random.below(range);
            for _ in 0..DRAWS {
                if !ends.contains(&end) {
                    break;
                }
                end = id + random.below(range);
            }
            ends.push(end);
        }
        ends
    }

    fn range(&self, id: u64, kind: u64, exists: f64) -> u64 {
        ((self.links(id, kind) as f64 / exists).ceil() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_types_share_all_links_of_a_node() {
        let graph = Graph::new(10_000);
        let all: u64 = (1..=10_000)
            .flat_map(|id| (0..TYPES).map(move |kind| (id, kind)))
            .map(|(id, kind)| graph.links(id, kind))
            .sum();
        assert_eq!(all, (0..10_000).map(|rank| links_of_rank(rank, 10_000)).sum::<u64>());
    }

    #[test]
    fn picked_links_exist_as_often_as_they_should() {
        let graph = Graph::new(10_000);
        let mut random = Random::new(1, 0);
        for exists in [EXISTS_FOR_ADD, EXISTS_FOR_GET, EXISTS_FOR_CHANGE] {
            let (mut all, mut existing) = (0u32, 0u32);
            for _ in 0..100_000 {
                let id = graph.link_write(&mut random);
                // With few links, rounding the range up makes the share smaller.
                if graph.links(id, 0) >= 10 {
                    all += 1;
                    let end = graph.other_end(id, 0, exists, &mut random);
                    existing += u32::from(end < id + graph.links(id, 0));
                }
            }
            let found = f64::from(existing) / f64::from(all);
            assert!((found - exists).abs() < 0.05, "{found} for {exists}");
        }
    }

    #[test]
    fn requests_of_several_links_have_2_6_in_the_mean_and_none_twice() {
        let graph = Graph::new(10_000);
        let mut random = Random::new(1, 0);
        let mut sum = 0;
        for _ in 0..50_000 {
            let id = graph.link_read(&mut random);
            let mut ends = graph.other_ends(id, 1, &mut random);
            sum += ends.len();
            ends.sort_unstable();
            assert!(ends.windows(2).all(|pair| pair[0] < pair[1]) && ends[0] >= id && ends.len() < 128);
        }
        let mean = sum as f64 / 50_000.0;
        assert!((mean - 2.6).abs() < 0.05, "{mean}");
    }

    #[test]
    fn reads_hardly_prefer_nodes_with_many_links_and_writes_do_a_little() {
        let graph = Graph::new(20_000);
        let mut random = Random::new(1, 0);
        let mut mean = |pick: fn(&Graph, &mut Random) -> u64| {
            (0..50_000).map(|_| graph.links(pick(&graph, &mut random), 0)).sum::<u64>() as f64 / 50_000.0
        };
        let (any, reads, writes) =
            (mean(Graph::node_delete), mean(Graph::link_read), mean(Graph::link_write));
        assert!(any < reads && reads < writes, "{any} {reads} {writes}");
    }
}
