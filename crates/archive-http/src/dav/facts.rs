//! What is at a place, and what is in it.

use super::place::Place;
use crate::conditions::tag;
use crate::problem::Problem;
use crate::serve::Site;
use teak_archive::{Error, Node, Oid};

/// What is at a place.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub(crate) is_directory: bool,
    /// Of a file in the archive.
    pub(crate) oid: Option<Oid>,
    pub(crate) size: u64,
    pub(crate) content_type: Option<String>,
    pub(crate) tag: Option<String>,
    /// In microseconds since 1970, as the next.
    pub(crate) created: Option<i64>,
    pub(crate) modified: Option<i64>,
    /// Dead ones, each an element of XML.
    pub(crate) properties: Vec<String>,
}

impl Facts {
    fn of_directory() -> Facts {
        Facts { is_directory: true, ..Facts::default() }
    }
}

impl From<Node> for Facts {
    fn from(node: Node) -> Facts {
        match node {
            Node::Directory(folder) => Facts {
                created: folder.created,
                modified: folder.created,
                properties: folder.properties,
                ..Facts::of_directory()
            },
            Node::File(record) => Facts {
                is_directory: false,
                oid: Some(record.oid),
                size: record.size,
                content_type: record.content_type().map(str::to_string),
                tag: Some(tag(record.data)),
                created: Some(record.created),
                modified: Some(record.modified()),
                properties: record.properties().map(str::to_string).collect(),
            },
        }
    }
}

/// What is at a place, if something is.
pub(super) fn facts_of(site: &Site, place: &Place) -> Result<Option<Facts>, Problem> {
    if let Some(aside) = site.dav.aside.get(place) {
        return Ok(Some(aside.facts()));
    }
    match place.in_tree() {
        None => Ok(Some(Facts::of_directory())),
        Some((root, path)) => match site.archive.node(root, path) {
            Ok(node) => Ok(node.map(Facts::from)),
            // A view, or what cannot be a path.
            Err(Error::Unknown(_)) => Ok(None),
            Err(error) => Err(error.into()),
        },
    }
}

/// Tells what is in a directory, until it is enough.
pub(super) fn each_child(
    site: &Site,
    place: &Place,
    call: &mut dyn FnMut(Place, Facts) -> Result<bool, Error>,
) -> Result<(), Problem> {
    if let Some((root, path)) = place.in_tree() {
        site.archive.each_child(root, path, &mut |name, node| call(place.child(name), node.into()))?;
        return Ok(());
    }
    let names = match place {
        Place::Views => site.archive.views()?.into_keys().collect(),
        _ => vec!["files".to_string(), "views".to_string()],
    };
    for name in names {
        if !call(place.child(&name), Facts::of_directory())? {
            break;
        }
    }
    Ok(())
}
