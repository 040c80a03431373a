//! No route drops a field that another one has: it declares it, or refuses it (specification 4.6).

use std::collections::BTreeSet;

use super::ROUTES;
use crate::api::fields::refused;

/// The routes whose answers are text that a model writes as the request says.
const OF_TEXT: [&str; 4] = ["completions", "chat/completions", "responses", "messages"];

/// The names of the fields that a route declares. Fields that are accepted and not used are among them only
/// `with_unused`.
fn declared(path: &str, with_unused: bool) -> BTreeSet<&'static str> {
    let route = ROUTES.iter().find(|route| route.path == path);
    let groups = (route.expect("a route").fields)().into_iter();
    let is_unused = |name: &str| name.starts_with("Unused") || name == "VendorFields";
    let groups = groups.filter(|group| with_unused || !is_unused(group.name));
    let members = groups.flat_map(|group| group.members);
    members.map(|member| member.field.name()).collect()
}

#[test]
fn fields_of_one_route_are_declared_or_refused_by_the_others() {
    let refused: BTreeSet<&str> = refused::names().collect();
    let all: BTreeSet<&str> = OF_TEXT
        .iter()
        .flat_map(|path| declared(path, false))
        .collect();
    assert!(all.contains("truncation_side"));
    for path in OF_TEXT {
        let own = declared(path, true);
        let dropped: Vec<_> = all
            .iter()
            .filter(|name| !own.contains(*name) && !refused.contains(*name))
            .collect();
        assert!(dropped.is_empty(), "{path} drops {dropped:?}");
    }
}
