//! LinkBench's ten operations and how often each is done.

/// What a requester does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    AddLink,
    DeleteLink,
    UpdateLink,
    CountLink,
    MultigetLink,
    GetLinksList,
    AddNode,
    UpdateNode,
    DeleteNode,
    GetNode,
}

use Operation::*;

/// Percentages of the default workload, which were observed in production.
const MIX: [(Operation, f64); 10] = [
    (AddLink, 8.9886601),
    (DeleteLink, 2.9907664),
    (UpdateLink, 8.0122125),
    (CountLink, 4.8863567),
    (MultigetLink, 0.5261142),
    (GetLinksList, 50.7119145),
    (AddNode, 2.5732789),
    (UpdateNode, 7.366437),
    (DeleteNode, 1.0115914),
    (GetNode, 12.9326683),
];

impl Operation {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Operation> {
        MIX.iter().map(|(operation, _)| *operation)
    }

    /// A number from 0 to 9.
    pub fn index(self) -> usize {
        self as usize
    }

    /// LinkBench's name for it.
    pub fn name(self) -> &'static str {
        match self {
            AddLink => "ADD_LINK",
            DeleteLink => "DELETE_LINK",
            UpdateLink => "UPDATE_LINK",
            CountLink => "COUNT_LINK",
            MultigetLink => "MULTIGET_LINK",
            GetLinksList => "GET_LINKS_LIST",
            AddNode => "ADD_NODE",
            UpdateNode => "UPDATE_NODE",
            DeleteNode => "DELETE_NODE",
            GetNode => "GET_NODE",
        }
    }

    /// The operation of a number between 0 and 1.
    pub fn of_fraction(fraction: f64) -> Operation {
        let mut percent = fraction * 100.0;
        for (operation, share) in MIX {
            percent -= share;
            if percent < 0.0 {
                return operation;
            }
        }
        GetNode
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn the_mix_is_the_published_one() {
        assert!((MIX.iter().map(|(_, share)| share).sum::<f64>() - 100.0).abs() < 1e-5);
        let mut random = Random::new(1, 0);
        let mut counts = [0u32; 10];
        for _ in 0..200_000 {
            counts[Operation::of_fraction(random.fraction()).index()] += 1;
        }
        for (operation, share) in MIX {
            let found = f64::from(counts[operation.index()]) / 2000.0;
            assert!((found - share).abs() < 0.5, "{operation:?}: {found} for {share}");
        }
    }

    #[test]
    fn numbers_and_order_agree() {
        assert!(Operation::all().enumerate().all(|(index, operation)| operation.index() == index));
    }
}
