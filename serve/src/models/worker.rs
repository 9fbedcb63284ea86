//! The worker of a model: questions wait in a queue; one thread takes all that can be answered together, and answers them.
//!
//! No question waits for others: a batch is what has come while the batch before was computed, so it is one row when there
//! is little to do and hundreds when there is much. A full queue refuses at once, which costs almost nothing.

use crate::answers::rows::NUMBERS;
use crate::models::questions::{Answer, Question, answer};
use crate::models::queue::Queue;
use crate::monitoring::metrics::Metrics;
use crate::problem::Problem;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use sumout::Predictor;
use tokio::sync::oneshot;

/// Rows that are answered together.
pub const BATCH: usize = 256;

/// Receives an answer.
pub type Reply = oneshot::Receiver<Result<Answer, Problem>>;

struct Job {
    question: Question,
    rows: Vec<f32>,
    reply: oneshot::Sender<Result<Answer, Problem>>,
}

/// What is answered together.
struct Batch {
    question: Option<Question>, // none where the first is answered alone
    numbers: usize,
    most: usize,
}

impl Batch {
    fn new(first: &Job, width: usize) -> Self {
        Self {
            question: Some(first.question.clone()).filter(Question::is_shared),
            numbers: first.rows.len(),
            most: BATCH * width,
        }
    }

    /// Takes another question, if it is the same and there is room.
    fn takes(&mut self, other: &Job) -> bool {
        let more = self.numbers + other.rows.len();
        let fits = self.question.as_ref() == Some(&other.question) && more <= self.most;
        self.numbers = if fits { more } else { self.numbers };
        fits
    }
}

/// Whether a question can be answered together with the first, as far as a batch goes.
fn batch_of(first: &Job, width: usize) -> impl FnMut(&Job) -> bool + use<> {
    let mut batch = Batch::new(first, width);
    move |other| batch.takes(other)
}

/// A model and its thread, which ends when this is dropped and nothing waits any more.
pub struct Worker {
    queue: Arc<Queue<Job>>,
    max_waiting: usize,
    metrics: Arc<Metrics>,
}

impl Worker {
    /// Starts the thread; at most `max_waiting` questions wait.
    pub fn start(
        predictor: Predictor,
        max_waiting: usize,
        metrics: Arc<Metrics>,
    ) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::new());
        let (theirs, counted) = (queue.clone(), metrics.clone());
        let work = move || work(predictor, &theirs, &counted);
        std::thread::Builder::new()
            .name("worker".into())
            .spawn(work)?;
        Ok(Self {
            queue,
            max_waiting,
            metrics,
        })
    }

    /// Puts a question into the queue, or refuses it if the queue is full.
    pub fn ask(&self, question: Question, rows: Vec<f32>) -> Result<Reply, Problem> {
        let (reply, receiver) = oneshot::channel();
        let job = Job {
            question,
            rows,
            reply,
        };
        if self.queue.push(job, self.max_waiting).is_err() {
            self.metrics.shed.fetch_add(1, Relaxed);
            return Err(Problem::busy(
                "too many questions are waiting for this model; try again in a moment",
            ));
        }
        Ok(receiver)
    }

    /// Questions that wait.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.queue.close();
    }
}

fn work(mut predictor: Predictor, queue: &Queue<Job>, metrics: &Metrics) {
    let width = predictor.model().structure.width();
    while let Some(mut jobs) = queue.take(|first| batch_of(first, width)) {
        jobs.retain(|job| !job.reply.is_closed()); // clients that hung up need no answer
        let Some(first) = jobs.first_mut() else {
            continue;
        };
        let question = first.question.clone();
        let sizes: Vec<usize> = jobs.iter().map(|job| job.rows.len() / width).collect();
        let rows: Vec<f32> = match &mut jobs[..] {
            [job] => std::mem::take(&mut job.rows),
            all => all.iter().flat_map(|job| &job.rows).copied().collect(),
        };
        metrics.batch(rows.len() / width);
        metrics.rows.fetch_add((rows.len() / width) as u64, Relaxed);
        let answered = catch_unwind(AssertUnwindSafe(|| {
            answer(&mut predictor, &question, &rows)
        }));
        match answered {
            Ok(Ok(answer)) => {
                let parts = split(answer, &sizes, width);
                for (job, part) in jobs.into_iter().zip(parts) {
                    let _ = job.reply.send(Ok(part)); // they may have hung up meanwhile
                }
            }
            Ok(Err(problem)) => jobs
                .into_iter()
                .for_each(|job| drop(job.reply.send(Err(problem.clone())))),
            Err(_) => {
                // Its buffers may be in any state: start again from the weights, which were checked when loaded.
                if let Ok(fresh) = Predictor::new(predictor.model().clone()) {
                    predictor = fresh;
                }
                let problem = Problem::ours("the engine failed on this batch");
                jobs.into_iter()
                    .for_each(|job| drop(job.reply.send(Err(problem.clone()))));
            }
        }
    }
}

/// One answer to several clients, who sent this many rows each.
fn split(answer: Answer, sizes: &[usize], width: usize) -> Vec<Answer> {
    if sizes.len() == 1 {
        return vec![answer];
    }
    let (mut first, all) = (0, sizes.iter().sum());
    let mut parts = Vec::with_capacity(sizes.len());
    for &size in sizes {
        parts.push(answer.part(first..first + size, all, width));
        first += size;
    }
    parts
}

impl Answer {
    /// The answer to some of all rows that were asked about.
    fn part(&self, rows: Range<usize>, all_rows: usize, width: usize) -> Self {
        let numbers = rows.start * width..rows.end * width;
        match self {
            Self::Scores(posterior, log_likelihood) => {
                let classes = posterior.len() / log_likelihood.len().max(1);
                let posterior = posterior[rows.start * classes..rows.end * classes].to_vec();
                Self::Scores(posterior, log_likelihood[rows].to_vec())
            }
            Self::Numbers(all) => {
                Self::Numbers(all[rows.start * NUMBERS..rows.end * NUMBERS].to_vec())
            }
            Self::Probabilities(all) => {
                let values = all.len() / all_rows.max(1);
                Self::Probabilities(all[rows.start * values..rows.end * values].to_vec())
            }
            Self::Filled(values, deviation) => {
                let deviation = deviation.as_ref().map(|all| all[numbers.clone()].to_vec());
                Self::Filled(values[numbers].to_vec(), deviation)
            }
            other => other.clone(), // never shared
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::pets;
    use sumout::queries::How;

    const HOLE: f32 = f32::NAN;

    fn worker(most: usize) -> Worker {
        Worker::start(Predictor::new(pets()).unwrap(), most, Arc::default()).unwrap()
    }

    fn scores(reply: Reply) -> (Vec<f64>, Vec<f64>) {
        match reply.blocking_recv().unwrap().unwrap() {
            Answer::Scores(posterior, log_likelihood) => (posterior, log_likelihood),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn everyone_gets_their_own_answer() {
        let rows = |i: usize| -> Vec<f32> {
            (0..1 + i % 3)
                .flat_map(|j| [(i * j) as f32, HOLE, 1.0, HOLE])
                .collect()
        };
        let mut alone = Predictor::new(pets()).unwrap();
        let worker = worker(1000);
        let replies: Vec<Reply> = (0..50)
            .map(|i| worker.ask(Question::Score, rows(i)).unwrap())
            .collect();
        for (i, reply) in replies.into_iter().enumerate() {
            let (posterior, log_likelihood) = scores(reply);
            let rows = rows(i);
            let alone = alone.score(alone.model().rows(&rows).unwrap()).unwrap();
            assert_eq!(log_likelihood, alone.log_marginal, "{i}");
            assert_eq!(posterior, alone.posterior.into_vec(), "{i}");
        }
    }

    #[test]
    fn everyone_gets_their_own_probabilities() {
        let worker = worker(1000);
        let many = vec![HOLE; 4 * 4000]; // the others wait behind it, and are answered together
        let first = worker.ask(Question::Score, many).unwrap();
        let ask = |coin| {
            worker.ask(
                Question::Probabilities { class: None },
                vec![HOLE, HOLE, coin, 2.0],
            )
        };
        let replies = [0.0, HOLE, 1.0].map(|coin| ask(coin).unwrap());
        scores(first);
        let coins = replies.map(|reply| match reply.blocking_recv().unwrap().unwrap() {
            Answer::Probabilities(all) => (all.len(), all[2], all[3], all[6]),
            other => panic!("{other:?}"),
        });
        assert_eq!(coins[0], (7, 1.0, 0.0, 1.0), "2 + 2 + 3 values");
        assert_eq!(coins[2], (7, 0.0, 1.0, 1.0));
        assert!(coins[1].1 > 0.0 && (coins[1].1 + coins[1].2 - 1.0).abs() < 1e-6);
    }

    #[test]
    fn batches_are_of_one_kind_and_not_too_large() {
        let queue = Queue::new();
        let job = |question: &Question, rows: usize| {
            let (reply, receiver) = oneshot::channel();
            std::mem::forget(receiver);
            Job {
                question: question.clone(),
                rows: vec![HOLE; 4 * rows],
                reply,
            }
        };
        let mean = |class| Question::Fill {
            how: How::Mean,
            class,
            seed: 0,
        };
        let draw = Question::Fill {
            how: How::Sample,
            class: None,
            seed: 0,
        };
        let asked = [
            (Question::Score, 200),
            (mean(None), 1),
            (Question::Score, 100), // too many for the first batch
            (Question::Score, 56),
            (mean(Some(1)), 1),
            (mean(None), 2),
            (draw.clone(), 1),
            (draw, 1),
        ];
        asked
            .iter()
            .for_each(|(question, rows)| assert!(queue.push(job(question, *rows), 8).is_ok()));
        queue.close();
        let mut sizes = Vec::new();
        while let Some(batch) = queue.take(|first| batch_of(first, 4)) {
            sizes.push(
                batch
                    .iter()
                    .map(|job| job.rows.len() / 4)
                    .collect::<Vec<_>>(),
            );
        }
        assert_eq!(
            sizes,
            [
                vec![200, 56],
                vec![1, 2],
                vec![100],
                vec![1],
                vec![1],
                vec![1]
            ]
        );
    }

    #[test]
    fn a_full_queue_refuses_and_a_dropped_one_finishes() {
        let worker = worker(2);
        let many = vec![HOLE; 4 * 4000]; // answering takes longer than asking fifty times
        let replies: Vec<_> = (0..50)
            .map(|_| worker.ask(Question::Score, many.clone()))
            .collect();
        let refused = replies.iter().filter(|reply| reply.is_err()).count();
        assert!(refused > 0 && refused < 50, "{refused}");
        assert_eq!(worker.metrics.shed.load(Relaxed), refused as u64);
        drop(worker);
        for reply in replies.into_iter().flatten() {
            assert_eq!(scores(reply).1.len(), 4000);
        }
    }

    #[test]
    fn bad_rows_are_an_error_and_the_thread_lives_on() {
        let worker = worker(10);
        let problem = worker
            .ask(Question::Score, vec![f32::INFINITY, HOLE, HOLE, HOLE])
            .unwrap();
        assert_eq!(
            problem
                .blocking_recv()
                .unwrap()
                .unwrap_err()
                .status
                .as_u16(),
            400
        );
        assert_eq!(
            scores(worker.ask(Question::Score, vec![HOLE; 4]).unwrap())
                .1
                .len(),
            1
        );
    }
}
