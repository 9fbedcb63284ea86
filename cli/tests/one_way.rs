//! A module of this crate uses only those that stand before it.

#[path = "../../engine/tests/module_order/mod.rs"]
mod module_order;

#[test]
fn modules_use_only_those_before_them() {
    module_order::check(env!("CARGO_MANIFEST_DIR"));
}
