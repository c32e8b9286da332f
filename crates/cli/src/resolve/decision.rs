//! What is to become of a transaction, by what its head has noted (storage/spider/spd_trx.cc of MariaDB): a head notes
//! each state before it does what follows from it.

use super::xid::Maker;

/// What a head has noted of a transaction, in `mysql.spider_xa`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Shards are being asked to prepare it: none has committed.
    NotYet,
    /// All have prepared it. Nobody was told of a COMMIT, and none has committed.
    Prepared,
    /// Some may have committed, and all are to.
    Commit,
    /// Some may have rolled it back, and all are to.
    Rollback,
}

impl State {
    /// As the table has it.
    pub fn of(text: &str) -> Option<State> {
        match text {
            "NOT YET" => Some(State::NotYet),
            "PREPARED" => Some(State::Prepared),
            "COMMIT" => Some(State::Commit),
            "ROLLBACK" => Some(State::Rollback),
            _ => None,
        }
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// On each shard that has it prepared.
    Commit,
    /// The same.
    Rollback,
    /// Nothing, for this reason.
    Leave(String),
}

/// Whether somebody may be at it.
#[derive(Debug, Clone, Copy)]
pub struct Life {
    /// The connection of the head that made it carries out a statement.
    pub is_busy: bool,
    /// For how many seconds it has been there at least, as far as is known.
    pub age: f64,
    /// From which age on one is touched.
    pub least: f64,
}

/// Of a transaction that a head knows; `maker`: None if a client gave it its name.
pub fn decide(state: Option<State>, maker: Option<Maker>, life: Life) -> Decision {
    if let (true, Some(maker)) = (life.is_busy, maker) {
        return Decision::Leave(format!("connection {} of the head may be at it", maker.connection));
    }
    if life.age < life.least {
        return Decision::Leave(format!("it is {:.0} s old, and younger than {:.0} s", life.age, life.least));
    }
    match state {
        Some(State::NotYet | State::Rollback) => Decision::Rollback,
        Some(State::Commit) => Decision::Commit,
        // Any decision would do, if it is the same everywhere; nobody waits for this one.
        Some(State::Prepared) if maker.is_some_and(|maker| maker.is_certain) => Decision::Rollback,
        Some(State::Prepared) => Decision::Leave("a client may have prepared it, and decides".into()),
        None => Decision::Leave("the head has a state that is not known".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_decides_and_what_may_be_alive_is_left() {
        let certain = Some(Maker { connection: 7, is_certain: true });
        let doubtful = Some(Maker { connection: 7, is_certain: false });
        let old = Life { is_busy: false, age: 61.0, least: 60.0 };
        for (state, decision) in [
            ("NOT YET", Decision::Rollback),
            ("PREPARED", Decision::Rollback),
            ("COMMIT", Decision::Commit),
            ("ROLLBACK", Decision::Rollback),
        ] {
            assert_eq!(decide(State::of(state), certain, old), decision, "{state}");
            for life in [Life { is_busy: true, ..old }, Life { age: 59.0, ..old }] {
                assert!(matches!(decide(State::of(state), certain, life), Decision::Leave(_)), "{state}");
            }
        }
        for maker in [None, doubtful] {
            assert!(matches!(decide(Some(State::Prepared), maker, old), Decision::Leave(_)));
            assert_eq!(decide(Some(State::Commit), maker, old), Decision::Commit);
        }
        assert!(matches!(decide(State::of("else"), certain, old), Decision::Leave(_)));
    }
}
