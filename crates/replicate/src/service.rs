//! What whoever started the program is told: whether all sources were begun, how many are followed, and what the others
//! do.

use crate::progress::{Condition, Progress};
use teak_console::service::Told;

/// How all sources are.
pub fn told(sources: &[Progress]) -> Told {
    let with = |state: Condition| sources.iter().filter(move |source| source.state() == state);
    let mut text = format!("following {} of {} sources", with(Condition::Following).count(), sources.len());
    for state in Condition::ALL.into_iter().filter(|&state| state != Condition::Following) {
        let names: Vec<&str> = with(state).map(|source| source.source.as_str()).collect();
        if !names.is_empty() {
            text += &format!("; {}: {}", state.name(), names.join(", "));
        }
    }
    let is_ready = sources.iter().all(|source| source.state() != Condition::Beginning);
    Told { is_ready, status: text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_ready_once_each_source_was_begun() {
        let sources = [Progress::new("a"), Progress::new("b"), Progress::new("c")];
        let is = |status: &str, is_ready| Told { is_ready, status: status.into() };
        assert_eq!(told(&sources), is("following 0 of 3 sources; beginning: a, b, c", false));
        sources[0].becomes(Condition::Following);
        sources[1].becomes(Condition::Waiting);
        assert_eq!(told(&sources), is("following 1 of 3 sources; beginning: c; waiting: b", false));
        sources[2].becomes(Condition::Waiting);
        assert_eq!(told(&sources), is("following 1 of 3 sources; waiting: b, c", true));
    }
}
