//! §7.1, §14: what is signed for one purpose is never what is signed for another.

use remuda_wire::signed::SIGNING_REGISTRY;

#[test]
fn no_domain_begins_another() {
    assert_eq!(SIGNING_REGISTRY.len(), 14);
    for (place, one) in SIGNING_REGISTRY.iter().enumerate() {
        assert!(one.domain.is_ascii() && one.fields.first() == Some(&"context"), "{}", one.name);
        // Behind every domain stands the context, whose first byte is its version: no text goes on there.
        for other in &SIGNING_REGISTRY[place + 1..] {
            let apart = !one.domain.starts_with(other.domain) && !other.domain.starts_with(one.domain);
            assert!(apart, "{} and {} can sign the same bytes", one.name, other.name);
        }
    }
}
