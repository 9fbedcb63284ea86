//! Sounds: a folder of WAV files is learned from, and files with other lengths are classified.

mod program;

use program::Folder;
use std::fs;

/// A WAV file of 8 bits: a tone with so many steps in a wave.
fn tone(steps: usize, wave: f64, phase: f64) -> Vec<u8> {
    let sample = |i: usize| 128.0 + 100.0 * (i as f64 * std::f64::consts::TAU / wave + phase).sin();
    let mut file = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
    file.extend(b"\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data");
    file.extend((steps as u32).to_le_bytes());
    file.extend((0..steps).map(|i| sample(i) as u8));
    file
}

#[test]
fn tones_are_told_apart() {
    let folder = Folder::new();
    for (class, wave) in [("high", 4.0), ("low", 16.0)] {
        fs::create_dir_all(folder.path(&format!("tones/{class}"))).unwrap();
        for i in 0..24 {
            let file = folder.path(&format!("tones/{class}/{i}.wav"));
            fs::write(file, tone(64 - i, wave, i as f64)).unwrap();
        }
    }
    let run = folder.run("train --data tones --steps 150 --out tones.sumout");
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("48 rows of 1×64×1, "), "{}", run.stdout);
    fs::write(folder.path("new.wav"), tone(40, 4.0, 0.3)).unwrap();
    let run = folder.run("predict tones.sumout --data new.wav");
    let answer = run.stdout.lines().nth(1).unwrap_or_default().to_owned();
    assert!(answer.contains("high"), "{}{}", run.stdout, run.stderr);
    fs::write(folder.path("long.wav"), tone(65, 4.0, 0.3)).unwrap();
    let refused = folder.refuse("predict tones.sumout --data long.wav");
    assert!(
        refused.contains("long.wav: expected at most 64 steps, as the model has, got 65"),
        "{refused}"
    );
}
