//! Tables of text, and of Parquet.

use crate::files::file;
use sumout_data::encoding::Encoding;
use sumout_data::layout::{Keep, ReadOptions};
use sumout_data::notation::Notation;

/// 1.065,00
const EUROPEAN: Notation = Notation {
    decimal: ',',
    thousands: Some('.'),
};

/// The first byte chooses the options, the others are the file.
fn table(name: &str, bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else {
        return;
    };
    let is = |bit: u8| choice >> bit & 1 == 1;
    let target = is(0).then(|| "c".to_owned());
    let options = ReadOptions {
        target,
        no_header: is(1),
        unseen_missing: is(2),
        notation: if is(3) { EUROPEAN } else { Notation::default() },
        na: if is(4) { vec!["x".into()] } else { vec![] },
        keep: if is(5) { Keep::All } else { Keep::Nothing },
        encoding: match (is(6), is(7)) {
            (true, _) => Encoding::Latin1,
            (_, true) => Encoding::Utf16,
            _ => Encoding::Unknown,
        },
        ..ReadOptions::default()
    };
    file(name, bytes, &options);
}

/// CSV.
pub fn csv(bytes: &[u8]) {
    table("a.csv", bytes);
}

/// Tables with quotes, holes, dates, other signs between cells and other encodings.
pub fn csv_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "\0a,b,\"c d\"\n1,,x\n2.5,NA,\"y\"\"z\"\n",
        "\x01a,b,c\n1,2020-01-31,u\n,2021-02-28T10:00:00,v\n3,,u\n",
        "\x02a;b;c\n1,5;2;3\n2,5;;4\n",
        "\x081.234,5;x\n-2,0;y\n",
        "\x04age,sex,coin,kind\n1.5,f,0,1\n,m,1,\n",
        "\x13\u{feff}a\tb\tc\r\n1e5\t0x1\t\"a\n b\"\r\n\r\n2\t\t\r\n",
        "\0a,b\n9007199254740993,1e38\n-1e-40,inf\n",
    ];
    let mut seeds: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    seeds.push(b"\0\xff\xfea\0,\0b\0\n\x001\0,\x002\0\n\0".to_vec());
    seeds.push(b"\0a,b\n\xe4,1\n\xfc,2\n".to_vec());
    seeds.push(b"\x40a,b\n\xe4,1\n\x80,2\n".to_vec());
    seeds.push(b"\x80a\0,\0b\0\n\x001\0,\x002\0\n\0".to_vec());
    seeds.push(b"\x20id,age,sex,coin,kind\n7,1.5,f,0,1\n8,,m,1,\n".to_vec());
    seeds
}

/// JSON lines.
pub fn json_lines(bytes: &[u8]) {
    table("a.jsonl", bytes);
}

/// Objects, lists, values of every kind.
pub fn json_lines_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "\0{\"a\":1,\"b\":null,\"c\":\"x\"}\n{\"a\":2.5}\n",
        "\x01{\"c\":\"u\",\"a\":-1e-3,\"b\":true}\n\n{\"c\":\"v\",\"a\":\"NA\",\"b\":false}\r\n",
        "\0[1,2]\n[3,null]\n",
        "\0{\"a\\u0041\":\"\\ud83d\\ude00\",\"b\":9007199254740993}\n",
        "\x04{\"age\":3,\"sex\":\"m\",\"coin\":1,\"kind\":2}",
        "\0{\"a\":\"2020-01-31\"}\r{\"a\":\"2020-02-01\"}",
        "\x20{\"id\":7,\"age\":3,\"sex\":\"m\",\"coin\":1,\"kind\":2}\n{\"age\":null,\"sex\":\"f\",\"more\":0}\n",
        "\x20[1,\"x\"]\n[null,\"y\"]\n",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// A file of Parquet. Its first byte, which no reader looks at, says whether all columns are kept.
#[cfg(feature = "parquet")]
pub fn parquet(bytes: &[u8]) {
    let keep = match bytes.first() {
        Some(b'K') => Keep::All,
        _ => Keep::Nothing,
    };
    let options = ReadOptions {
        keep,
        ..ReadOptions::default()
    };
    file("a.parquet", bytes, &options);
}

/// Tables of pyarrow: one with its columns kept, one with a wrong byte, at which the crate `parquet` panics, and one with
/// two columns of the same name.
#[cfg(feature = "parquet")]
pub fn parquet_seeds() -> Vec<Vec<u8>> {
    let whole = include_bytes!("../../data/tests/data/table.parquet").to_vec();
    let mut damaged = whole.clone();
    damaged[474] ^= 0x80;
    let mut kept = include_bytes!("../seeds/pets.parquet").to_vec();
    kept[0] = b'K';
    let twice = include_bytes!("../seeds/twice.parquet").to_vec();
    vec![whole, kept, damaged, twice]
}
