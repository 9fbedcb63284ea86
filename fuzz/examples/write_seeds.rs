//! Writes the seeds of all targets, for libFuzzer: `FOLDER/TARGET/NUMBER`.

use std::fs;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).expect("a folder");
    for target in sumout_fuzz::targets() {
        let folder = Path::new(&folder).join(target.name);
        fs::create_dir_all(&folder)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            fs::write(folder.join(number.to_string()), seed)?;
        }
    }
    Ok(())
}
