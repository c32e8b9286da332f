//! The requests of one requester, in their order: which operation, on what, with which contents. They follow from the
//! seed and the requester's number, except that lists which were longer than what is read of them come back as requests
//! for the rest.

use super::graph::{Graph, EXISTS_FOR_ADD, EXISTS_FOR_CHANGE, FIRST_TYPE, TYPES};
use super::operation::Operation;
use super::payload::{self, Payload};
use crate::random::Random;
use std::sync::Arc;

/// At most so many links of a list are read at once.
pub const LIST_LIMIT: usize = 10_000;
/// The share of list requests that ask for the older rest of a list that was too long.
const OLDER: f64 = 0.003;
/// Long lists that are remembered.
const REMEMBERED: usize = 2048;

/// A link by its primary key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkKey {
    pub id1: u64,
    pub id2: u64,
    pub link_type: u64,
}

/// The links of one type from one node, or the older part of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    pub id1: u64,
    pub link_type: u64,
    /// Only links that are not newer than this (milliseconds), without the first of them.
    pub older_than: Option<u64>,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    AddLink(LinkKey, Vec<u8>),
    DeleteLink(LinkKey),
    UpdateLink(LinkKey, Vec<u8>),
    CountLinks { id1: u64, link_type: u64 },
    MultigetLinks { id1: u64, link_type: u64, id2s: Vec<u64> },
    GetLinksList(List),
    AddNode(Vec<u8>),
    UpdateNode(u64, Vec<u8>),
    DeleteNode(u64),
    GetNode(u64),
}

/// The stream of requests.
pub struct Requests {
    graph: Arc<Graph>,
    random: Random,
    links: [Payload; 2],
    nodes: [Payload; 2],
    too_long: Vec<List>,
}

impl Requests {
    /// The requests of requester number `requester`.
    pub fn new(graph: Arc<Graph>, seed: u64, requester: u64) -> Requests {
        // Streams of random numbers: the loader has those below 2^32. Added and updated contents have motifs of their
        // own.
        let stream = (requester + 1) << 32;
        Requests {
            graph,
            random: Random::new(seed, stream),
            links: [1, 2].map(|part| Payload::new(payload::LINK, seed, stream + part)),
            nodes: [3, 4].map(|part| Payload::new(payload::NODE, seed, stream + part)),
            too_long: Vec::new(),
        }
    }

    /// The next operation and its request.
    pub fn next(&mut self) -> (Operation, Request) {
        let operation = Operation::of_fraction(self.random.fraction());
        let request = match operation {
            Operation::AddLink => {
                let key = self.link_to_write(EXISTS_FOR_ADD);
                Request::AddLink(key, self.links[0].make(&mut self.random))
            }
            Operation::DeleteLink => Request::DeleteLink(self.link_to_write(EXISTS_FOR_CHANGE)),
            Operation::UpdateLink => {
                let key = self.link_to_write(EXISTS_FOR_CHANGE);
                Request::UpdateLink(key, self.links[1].make(&mut self.random))
            }
            Operation::CountLink => {
                let (id1, kind) = self.list_to_read();
                Request::CountLinks { id1, link_type: FIRST_TYPE + kind }
            }
            Operation::MultigetLink => {
                let (id1, kind) = self.list_to_read();
                let id2s = self.graph.other_ends(id1, kind, &mut self.random);
                Request::MultigetLinks { id1, link_type: FIRST_TYPE + kind, id2s }
            }
            Operation::GetLinksList => Request::GetLinksList(self.list()),
            Operation::AddNode => Request::AddNode(self.nodes[0].make(&mut self.random)),
            Operation::UpdateNode => {
                let id = self.graph.node_update(&mut self.random);
                Request::UpdateNode(id, self.nodes[1].make(&mut self.random))
            }
            Operation::DeleteNode => Request::DeleteNode(self.graph.node_delete(&mut self.random)),
            Operation::GetNode => Request::GetNode(self.graph.node_read(&mut self.random)),
        };
        (operation, request)
    }

    /// Tells that `list` was read: `rows` links, the last of `last_time` milliseconds. Where there may be more, it is
    /// remembered.
    pub fn was_read(&mut self, list: &List, rows: usize, last_time: u64) {
        let known =
            self.too_long.iter().position(|one| (one.id1, one.link_type) == (list.id1, list.link_type));
        let rest = List { older_than: Some(last_time), ..*list };
        match (known, rows >= LIST_LIMIT) {
            // A list that is read from its beginning does not forget how far it was read before.
            (Some(at), true) if list.older_than.is_some() => self.too_long[at] = rest,
            (Some(at), false) if list.older_than.is_some() => {
                self.too_long.swap_remove(at);
            }
            (None, true) if self.too_long.len() < REMEMBERED => self.too_long.push(rest),
            (None, true) => {
                let at = self.random.below(REMEMBERED as u64) as usize;
                self.too_long[at] = rest;
            }
            _ => {}
        }
    }

    fn list(&mut self) -> List {
        if self.random.fraction() < OLDER && !self.too_long.is_empty() {
            let at = self.random.below(self.too_long.len() as u64) as usize;
            return self.too_long[at];
        }
        let (id1, kind) = self.list_to_read();
        List { id1, link_type: FIRST_TYPE + kind, older_than: None }
    }

    fn list_to_read(&mut self) -> (u64, u64) {
        (self.graph.link_read(&mut self.random), self.random.below(TYPES))
    }

    fn link_to_write(&mut self, exists: f64) -> LinkKey {
        let id1 = self.graph.link_write(&mut self.random);
        let kind = self.random.below(TYPES);
        let id2 = self.graph.other_end(id1, kind, exists, &mut self.random);
        LinkKey { id1, id2, link_type: FIRST_TYPE + kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_make_equal_requests() {
        let graph = Arc::new(Graph::new(5000));
        let stream = |seed, requester| {
            let mut requests = Requests::new(graph.clone(), seed, requester);
            (0..2000).map(|_| requests.next()).collect::<Vec<_>>()
        };
        assert_eq!(stream(1, 0), stream(1, 0));
        assert_ne!(stream(1, 0), stream(1, 1));
        assert_ne!(stream(1, 0), stream(2, 0));
    }

    #[test]
    fn the_rest_of_a_long_list_is_asked_for_until_it_ends() {
        let mut requests = Requests::new(Arc::new(Graph::new(100)), 1, 0);
        let list = List { id1: 5, link_type: FIRST_TYPE, older_than: None };
        requests.was_read(&list, LIST_LIMIT - 1, 70);
        assert!(requests.too_long.is_empty());
        requests.was_read(&list, LIST_LIMIT, 60);
        let rest = loop {
            if let (_, Request::GetLinksList(list @ List { older_than: Some(_), .. })) = requests.next() {
                break list;
            }
        };
        assert_eq!(rest, List { older_than: Some(60), ..list });
        requests.was_read(&rest, LIST_LIMIT, 40);
        requests.was_read(&list, LIST_LIMIT, 65);
        assert_eq!(requests.too_long, [List { older_than: Some(40), ..list }]);
        requests.was_read(&requests.too_long[0].clone(), 3, 10);
        assert!(requests.too_long.is_empty());
    }

    #[test]
    fn no_more_lists_are_remembered_than_the_limit() {
        let mut requests = Requests::new(Arc::new(Graph::new(100)), 1, 0);
        for id1 in 0..3000 {
            requests.was_read(&List { id1, link_type: FIRST_TYPE, older_than: None }, LIST_LIMIT, 1);
        }
        assert_eq!(requests.too_long.len(), REMEMBERED);
    }
}
