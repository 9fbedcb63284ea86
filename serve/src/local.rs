//! The service without HTTP: the page's requests answered in this process, by the same queries, questions and writers.
//!
//! One request is answered at a time, and nobody else waits, so there are no limits, batches or threads.

use crate::answers::rows::{AnswerOf, AnswerParts, Block};
use crate::answers::writer::AnswerWriter;
use crate::endpoints::asked::RowsAsked;
use crate::endpoints::queries::{
    ExamplesQuery, ExplainQuery, ImputeQuery, PredictQuery, SampleQuery, generated,
};
use crate::formats::csv_rows::{CsvRows, Piece};
use crate::formats::json;
use crate::formats::negotiate::BodyFormat;
use crate::models::examples::{Example, examples};
use crate::models::questions::{Question, answer};
use crate::models::summary::ModelSummary;
use crate::problem::Problem;
use http::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sumout::{Model, Predictor};
use sumout_data::encode::Encoder;
use sumout_data::model_files::layout_of;

/// Rows of a table that are answered together.
const BATCH: usize = 256;

/// Models, and the answers of the service about them.
#[derive(Default)]
pub struct LocalService {
    models: Vec<LocalModel>,
}

/// A request as the page makes it.
#[derive(Clone, Copy, Debug)]
pub struct LocalRequest<'a> {
    /// Such as `/v1/impute`.
    pub path: &'a str,
    /// What follows the question mark.
    pub query: &'a str,
    /// Rows in CSV instead of JSON.
    pub csv: bool,
    /// The rows.
    pub body: &'a [u8],
}

/// Why a request has no answer: a status of HTTP, and one sentence.
#[derive(Debug)]
pub struct LocalProblem {
    /// 4xx for errors of the one who asks.
    pub status: u16,
    /// What was expected and what came.
    pub message: String,
}

impl From<Problem> for LocalProblem {
    fn from(problem: Problem) -> Self {
        Self {
            status: problem.status.as_u16(),
            message: problem.message,
        }
    }
}

struct LocalModel {
    name: String,
    predictor: Predictor,
    encoder: Encoder,
    classes: Vec<String>,
    predicted: Option<usize>,
    about: Value,
    examples: Vec<Example>,
}

impl LocalModel {
    fn new(name: &str, bytes: &[u8]) -> Result<Self, Problem> {
        let model = Model::from_bytes(bytes)?;
        let layout = layout_of(&model);
        let classes = 0..model.structure.classes;
        let classes: Vec<String> = classes.map(|class| model.class_name(class)).collect();
        let encoder = Encoder::new(&layout).with_kinds(&model.structure.row_kinds());
        let examples = examples(None, &layout, &classes).unwrap_or_default();
        let about = ModelSummary {
            name,
            model: &model,
            layout: &layout,
            encoder: &encoder,
            classes: &classes,
            examples: examples.len(),
        };
        Ok(Self {
            name: name.to_owned(),
            about: about.json(),
            predictor: Predictor::new(model)?,
            predicted: layout.predicted,
            encoder,
            classes,
            examples,
        })
    }

    fn answer_of(&self, parts: AnswerParts) -> AnswerOf<'_> {
        AnswerOf {
            model: &self.name,
            encoder: &self.encoder,
            classes: &self.classes,
            parts,
        }
    }

    /// Everything that is asked about some rows, of which the first has this number.
    fn block(&mut self, asked: &RowsAsked, piece: Piece, first: usize) -> Result<Block, Problem> {
        let rows = piece.values.len() / self.encoder.width();
        let questions = asked.questions(piece.values, first).into_iter();
        let answers =
            questions.map(|(question, rows)| answer(&mut self.predictor, &question, &rows));
        let answers = answers.collect::<Result<_, _>>()?;
        Ok(Block {
            texts: piece.texts,
            ..asked.block(answers, rows)
        })
    }

    fn json_rows(&mut self, asked: &RowsAsked, body: &[u8]) -> Result<Vec<u8>, Problem> {
        let values = json::document(body, &self.encoder, usize::MAX)?;
        let texts = Vec::new();
        let block = if values.is_empty() {
            Block::default()
        } else {
            self.block(asked, Piece { values, texts }, 0)?
        };
        let of = self.answer_of(asked.parts);
        let mut writer = AnswerWriter::new(BodyFormat::Json, of, None, Vec::new())?;
        writer.block(&block)?;
        writer.finish()
    }

    fn csv_rows(&mut self, asked: &RowsAsked, body: &[u8]) -> Result<Vec<u8>, Problem> {
        let mut rows = CsvRows::new(body, &self.encoder, asked.absent)?;
        let table = Some(rows.table.clone());
        let mut written = Vec::new();
        let mut blocks = Vec::new();
        for first in (0..).step_by(BATCH) {
            let mut piece = Piece::default();
            while piece.texts.len() < BATCH && rows.read(&self.encoder, &mut piece)? {}
            if piece.texts.is_empty() {
                break;
            }
            blocks.push(self.block(asked, piece, first)?);
        }
        let of = self.answer_of(asked.parts);
        let mut writer = AnswerWriter::new(BodyFormat::Csv, of, table, &mut written)?;
        blocks.iter().try_for_each(|block| writer.block(block))?;
        writer.finish()?;
        Ok(written)
    }

    fn rows(&mut self, asked: &RowsAsked, request: LocalRequest<'_>) -> Result<Vec<u8>, Problem> {
        if request.csv {
            self.csv_rows(asked, request.body)
        } else {
            self.json_rows(asked, request.body)
        }
    }

    fn generated(&mut self, question: &Question) -> Result<Vec<u8>, Problem> {
        let answer = answer(&mut self.predictor, question, &[])?;
        let (parts, block) = generated(answer, self.encoder.width())?;
        let of = self.answer_of(parts);
        let mut writer = AnswerWriter::new(BodyFormat::Json, of, None, Vec::new())?;
        writer.block(&block)?;
        writer.finish()
    }
}

/// The query of a request.
fn query<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    let read = serde_urlencoded::from_str(text);
    read.map_err(|error| Problem::bad(format!("query: {error}")))
}

impl LocalService {
    /// Adds a model; one of that name is replaced.
    pub fn open(&mut self, name: &str, bytes: &[u8]) -> Result<(), LocalProblem> {
        let model = LocalModel::new(name, bytes)?;
        match self.models.iter_mut().find(|other| other.name == name) {
            Some(other) => *other = model,
            None => self.models.push(model),
        }
        Ok(())
    }

    /// The body of the answer, in JSON, or in CSV for rows in CSV.
    pub fn answer(&mut self, request: LocalRequest<'_>) -> Result<Vec<u8>, LocalProblem> {
        Ok(self.answer_or_problem(request)?)
    }

    fn answer_or_problem(&mut self, request: LocalRequest<'_>) -> Result<Vec<u8>, Problem> {
        let text = request.query;
        match request.path {
            "/v1/models" => Ok(self.summaries()),
            "/v1/predict" => {
                let asked: PredictQuery = query(text)?;
                let model = self.find(asked.model.as_deref())?;
                model.rows(&asked.asked(model.predicted), request)
            }
            "/v1/impute" => {
                let asked: ImputeQuery = query(text)?;
                let model = self.find(asked.model.as_deref())?;
                model.rows(&asked.asked(&model.classes)?, request)
            }
            "/v1/sample" => {
                let asked: SampleQuery = query(text)?;
                let model = self.find(asked.model.as_deref())?;
                model.generated(&asked.question(&model.classes)?)
            }
            "/v1/explain" => {
                let asked: ExplainQuery = query(text)?;
                let model = self.find(asked.model.as_deref())?;
                model.generated(&asked.question()?)
            }
            "/v1/examples" => {
                let asked: ExamplesQuery = query(text)?;
                let model = self.find(asked.model.as_deref())?;
                let answer = asked.answer(&model.name, &model.encoder, &model.examples)?;
                Ok(answer.to_string().into_bytes())
            }
            path => self.about(path),
        }
    }

    /// All models, without their trees.
    fn summaries(&self) -> Vec<u8> {
        let short = |model: &LocalModel| {
            let mut about = model.about.clone();
            about.as_object_mut().map(|about| about.remove("trees"));
            about
        };
        let models: Vec<Value> = self.models.iter().map(short).collect();
        json!({ "models": models }).to_string().into_bytes()
    }

    /// One model, with them: `/v1/models/NAME`.
    fn about(&mut self, path: &str) -> Result<Vec<u8>, Problem> {
        let name = path.strip_prefix("/v1/models/").unwrap_or_default();
        let pairs: Vec<(String, String)> = query(&format!("name={name}"))?;
        let name = pairs.first().map(|(_, name)| name.as_str());
        Ok(self.find(name)?.about.to_string().into_bytes())
    }

    /// The model of that name; without a name, the only one.
    fn find(&mut self, name: Option<&str>) -> Result<&mut LocalModel, Problem> {
        let named = |model: &LocalModel| name.is_none_or(|name| model.name == name);
        let found = self.models.iter_mut().find(|model| named(model));
        found.ok_or_else(|| {
            let name: String = name.unwrap_or_default().chars().take(40).collect();
            let message = format!("model: expected the name of one that was opened, got '{name}'");
            Problem::new(StatusCode::NOT_FOUND, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::pets;

    fn service() -> LocalService {
        let mut service = LocalService::default();
        service.open("pets", &pets().to_bytes().unwrap()).unwrap();
        service
    }

    fn ask(path: &str, query: &str, csv: bool, body: &str) -> Result<String, String> {
        let body = body.as_bytes();
        let request = LocalRequest {
            path,
            query,
            csv,
            body,
        };
        let answered = service().answer(request);
        let answered = answered.map_err(|problem| problem.message)?;
        Ok(String::from_utf8(answered).unwrap())
    }

    fn parsed(path: &str, query: &str, body: &str) -> Value {
        serde_json::from_str(&ask(path, query, false, body).unwrap()).unwrap()
    }

    #[test]
    fn rows_are_answered_as_the_engine_answers_them() {
        let rows = "{\"rows\": [[1.5, \"m\", null, 2], {}]}";
        let answer = parsed("/v1/predict", "model=pets", rows);
        let mut predictor = Predictor::new(pets()).unwrap();
        let hole = f32::NAN;
        let values = [1.5, 1.0, hole, 2.0, hole, hole, hole, hole];
        let rows = predictor.model().rows(&values).unwrap();
        let posterior = predictor.posterior(rows).unwrap();
        for row in 0..2 {
            for (class, &p) in posterior.row(row).iter().enumerate() {
                assert_eq!(answer["rows"][row]["posterior"][class], json!(p));
            }
        }
    }

    #[test]
    fn a_table_comes_back_filled() {
        let text = "sex,age,coin,kind\n,1.50,0,\n".to_owned() + &"f,2,1,1\n".repeat(300);
        let filled = ask("/v1/impute", "classes=true", true, &text).unwrap();
        let lines: Vec<&str> = filled.lines().collect();
        let names = "sex,age,coin,kind,class,p_no,p_yes,log_likelihood";
        assert_eq!((lines.len(), lines[0]), (302, names));
        assert!(lines[1].contains(",1.50,0,") && !lines[1].starts_with(','));
        assert!(lines[301].starts_with("f,2,1,1,"), "{}", lines[301]);
    }

    #[test]
    fn models_samples_and_channels() {
        let models = parsed("/v1/models", "", "");
        assert_eq!(models["models"][0]["name"], "pets");
        assert_eq!(models["models"][0]["trees"], Value::Null);
        assert!(parsed("/v1/models/pets", "", "")["trees"].is_array());
        let samples = parsed("/v1/sample", "count=3&class=yes", "");
        assert_eq!(samples["rows"].as_array().unwrap().len(), 3);
        assert_eq!(samples["rows"][0]["class"], "yes");
        let channels = parsed("/v1/explain", "level=0&node=0&count=2", "");
        assert_eq!(channels["rows"].as_array().unwrap().len(), 4);
        assert_eq!(parsed("/v1/examples", "", "")["rows"], json!([]));
    }

    #[test]
    fn mistakes_are_said() {
        let says = |path, query, body| ask(path, query, false, body).unwrap_err();
        assert_eq!(
            says("/v1/predict", "model=cats", ""),
            "model: expected the name of one that was opened, got 'cats'"
        );
        assert_eq!(
            says("/v1/impute", "how=best", "{}"),
            "how: expected mean, median, mode or sample, got 'best'"
        );
        assert_eq!(
            says("/v1/impute", "", "{\"rows\": [[1, \"q\", 0, 0]]}"),
            "row 1, column 'sex': expected f, m, got 'q'"
        );
    }
}
