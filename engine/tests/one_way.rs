//! A module of the engine uses only those that stand before it.

mod module_order;

#[test]
fn modules_use_only_those_before_them() {
    module_order::check(env!("CARGO_MANIFEST_DIR"));
}

/// The check itself: a crate of two modules in which the first uses the second.
#[test]
fn a_circle_is_found() {
    let folder = std::env::temp_dir().join(format!("sumout-one-way-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("src/b")).unwrap();
    let write =
        |name: &str, text: &str| std::fs::write(folder.join("src").join(name), text).unwrap();
    write("lib.rs", "mod a;\npub(crate) mod b;\n");
    write("a.rs", "use crate::{b::{self, c::D}};\n");
    write("b/mod.rs", "pub mod c;\nuse c::D;\n");
    write("b/c.rs", "use crate::a;\n#[cfg(test)]\nmod tests {}\n");
    let found = module_order::circles(&folder);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[1].ends_with("a.rs uses b::c::D"), "{found:?}");
}
