//! Runs all targets on their seeds and on the files of their corpora, `FOLDER/TARGET/…`: for measuring coverage.

use std::fs;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).expect("a folder");
    for target in sumout_fuzz::targets() {
        (target.seeds)().iter().for_each(|seed| (target.run)(seed));
        let corpus = Path::new(&folder).join(target.name);
        if !corpus.is_dir() {
            continue;
        }
        for file in fs::read_dir(corpus)? {
            (target.run)(&fs::read(file?.path())?);
        }
    }
    Ok(())
}
