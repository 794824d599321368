//! A thread that owns one connection and carries out operations on it, so that no async thread ever waits
//! for a disk or a lock. Writes that queue up meanwhile are committed together.

use std::{
    sync::mpsc::{self, Receiver, Sender},
    sync::{Mutex, PoisonError},
    thread,
};

use libsql::Connection;
use skillz_tool::StoreError;
use tokio::sync::oneshot;

use crate::{
    database::{DatabaseFile, finish, with_patience},
    expiry::{self, Sweeper},
    failure::Failure,
    operation::Operation,
};

/// Most writes in one transaction; bounds how long other processes wait.
const WRITES_TOGETHER: usize = 64;

/// A thread with a connection, started at the first operation.
#[derive(Debug)]
pub(crate) struct Worker {
    file: DatabaseFile,
    role: Role,
    sender: Mutex<Option<Sender<Box<dyn Job>>>>,
}

/// What a worker's operations do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// They only read: no transaction, no waiting for writers.
    Reader,
    /// They write: each is acknowledged when its transaction is on disk.
    Writer,
}

/// An operation on its way, with whoever waits for it.
trait Job: Send {
    /// Runs the operation and keeps what came of it.
    fn run(&mut self, connection: &Connection) -> Result<(), Failure>;
    /// Tells whoever waits what came of it.
    fn succeed(self: Box<Self>);
    /// Tells whoever waits that nothing came of it.
    fn fail(self: Box<Self>, error: StoreError);
}

struct Pending<O: Operation> {
    operation: O,
    output: Option<Result<O::Output, StoreError>>,
    reply: oneshot::Sender<Result<O::Output, StoreError>>,
}

impl Worker {
    pub(crate) fn new(file: DatabaseFile, role: Role) -> Self {
        Self { file, role, sender: Mutex::new(None) }
    }

    /// Carries out an operation. Dropping the future does not undo it.
    pub(crate) async fn run<O: Operation>(&self, operation: O) -> Result<O::Output, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(Box::new(Pending { operation, output: None, reply }))?;
        answer.await.unwrap_or_else(|_| Err(StoreError::Failed("The database's thread ended early".to_owned())))
    }

    fn send(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        let mut sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        let job = match sender.as_ref() {
            Some(running) => match running.send(job) {
                Ok(()) => return Ok(()),
                // The thread died of a panic; a new one takes over.
                Err(mpsc::SendError(job)) => job,
            },
            None => job,
        };
        let (fresh, queue) = mpsc::channel();
        let mut state = State { file: self.file.clone(), role: self.role, connection: None, sweeper: Sweeper::default() };
        thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || state.serve(&queue))
            .map_err(|error| StoreError::Failed(format!("No thread for the database could be started: {error}")))?;
        // The receiver lives in the thread just started.
        let _ = fresh.send(job);
        *sender = Some(fresh);
        Ok(())
    }
}

struct State {
    file: DatabaseFile,
    role: Role,
    connection: Option<Connection>,
    sweeper: Sweeper,
}

impl State {
    fn serve(&mut self, queue: &Receiver<Box<dyn Job>>) {
        while let Ok(job) = queue.recv() {
            let mut jobs = vec![job];
            if self.role == Role::Writer {
                jobs.extend(queue.try_iter().take(WRITES_TOGETHER - 1));
            }
            self.carry_out(jobs);
        }
    }

    fn carry_out(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        let outcome = self.attempt(&mut jobs);
        match outcome {
            Ok(()) => jobs.into_iter().for_each(Job::succeed),
            // One of several may be at fault; alone, each gets its own answer.
            Err(_) if jobs.len() > 1 => jobs.into_iter().for_each(|job| self.carry_out(vec![job])),
            Err(failure) => {
                // A file that was replaced or repaired meanwhile is opened anew.
                self.connection = None;
                let error = failure.into_store_error(&self.file.path);
                for job in jobs {
                    job.fail(error.clone());
                }
            }
        }
    }

    fn attempt(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<(), Failure> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.file.open()?,
        };
        let outcome = match self.role {
            Role::Reader => with_patience(|| jobs.iter_mut().try_for_each(|job| job.run(&connection))),
            Role::Writer => with_patience(|| write(&connection, jobs, &mut self.sweeper)),
        };
        self.connection = Some(connection);
        outcome
    }
}

fn write(connection: &Connection, jobs: &mut [Box<dyn Job>], sweeper: &mut Sweeper) -> Result<(), Failure> {
    begin(connection)?;
    let outcome = jobs.iter_mut().try_for_each(|job| job.run(connection)).and_then(|()| {
        if sweeper.is_due() {
            finish(expiry::sweep(connection))?;
        }
        finish(async { Ok(connection.execute("COMMIT", ()).await?) })
    });
    if outcome.is_err() && !connection.is_autocommit() {
        // The first failure is what counts; a failed transaction is also undone when the connection closes.
        let _ = finish(async { Ok(connection.execute("ROLLBACK", ()).await?) });
    }
    outcome.map(|_| ())
}

/// Takes the write lock at once: a lock taken halfway could not be waited for.
fn begin(connection: &Connection) -> Result<(), Failure> {
    finish(async { Ok(connection.execute("BEGIN IMMEDIATE", ()).await?) }).map(|_| ())
}

impl<O: Operation> Job for Pending<O> {
    fn run(&mut self, connection: &Connection) -> Result<(), Failure> {
        self.output = match finish(self.operation.run(connection)) {
            Ok(output) => Some(Ok(output)),
            // The caller's own fault: nothing was written, and the others' writes are not touched by it.
            Err(Failure::Invalid(message)) => Some(Err(StoreError::Invalid(message))),
            Err(failure) => return Err(failure),
        };
        Ok(())
    }

    fn succeed(self: Box<Self>) {
        if let Some(output) = self.output {
            // Whoever asked may have given up.
            let _ = self.reply.send(output);
        }
    }

    fn fail(self: Box<Self>, error: StoreError) {
        let _ = self.reply.send(Err(error));
    }
}
