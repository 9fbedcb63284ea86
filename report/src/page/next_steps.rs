//! What to type next, and how the page was made.

use crate::page::Run;
use crate::text::{escape, thousands};
use sumout::Predictor;

/// What to type next.
pub fn next_commands(run: &Run<'_>) -> String {
    let model = escape(&format!("{}/model.sumout", run.folder));
    let seed = if run.seed == 1 {
        String::new()
    } else {
        format!(" --seed {}", run.seed)
    };
    format!(
        "<section class=\"card\">\n<h2>What to type next</h2>\n<div class=\"stack\">\n<div>\n<h3>With the model of this page</h3>\n\
         <pre><code><span># two numbers of the table above</span>\n\
         sumout evaluate {model} --data digits \\\n  --missing iid:0.9 --missing rect:2x11 --shifts 1{seed}\n\n\
         <span># class, posterior and log-likelihood of every image</span>\n\
         sumout predict {model} --data digits --out answers.csv\n\n\
         <span># a folder of PNGs; transparent pixels are missing</span>\n\
         sumout impute {model} --data pictures/ --how sample --out filled.png\n\n\
         <span># sixteen sevens</span>\n\
         sumout sample {model} --class 7 --count 16 --out sevens.png</code></pre>\n</div>\n\
         <div>\n<h3>With your own table</h3>\n\
         <pre><code><span># empty cells are missing, in training and in use</span>\n\
         sumout train --data mine.csv --target COLUMN --out mine.sumout\n\n\
         <span># how good is it if half of each row is missing?</span>\n\
         sumout evaluate mine.sumout --data test.csv --target COLUMN \\\n  --missing clean --missing iid:0.5\n\n\
         <span># classes, and missing values filled in</span>\n\
         sumout predict mine.sumout --data new.csv --out answers.csv\n\
         sumout impute mine.sumout --data new.csv --how mean --out full.csv</code></pre>\n</div>\n</div>\n\
         <p class=\"note\">Inside the repository, type <code>cargo run --release --</code> for <code>sumout</code>. \
         Every command has <code>--help</code>.</p>\n</section>\n"
    )
}

/// How the page was made.
pub fn foot(run: &Run<'_>, predictor: &Predictor) -> String {
    let weights = thousands(predictor.model().structure.weights());
    let Run {
        steps,
        seed,
        trained_on,
        ..
    } = run;
    format!(
        "<footer><p>Made by sumout {}: {weights} weights, {} images, {} steps, seed {seed}. Test scores are sums of log scores over nine \
         shifts. Digits: MNIST by Yann LeCun and Corinna Cortes, CC BY-SA 3.0.</p></footer>\n</main>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        thousands(*trained_on),
        thousands(*steps),
    )
}
