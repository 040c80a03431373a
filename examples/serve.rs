//! A native HTTP server with one model: the same endpoint that pages use, on a real port.
//!
//! `cargo run --release --example serve -- --model FILE.gguf`, then `POST /v1/chat/completions` or another route there.

#[path = "serve/access.rs"]
mod access;
#[path = "shared/adapters.rs"]
mod adapters;
#[path = "serve/body.rs"]
mod body;
#[path = "shared/device.rs"]
mod device;
#[path = "serve/limits.rs"]
mod limits;
#[path = "serve/load.rs"]
mod load;
#[path = "shared/load_arguments.rs"]
mod load_arguments;
#[path = "serve/options.rs"]
mod options;
#[path = "serve/server.rs"]
mod server;
#[path = "serve/timed_stream.rs"]
mod timed_stream;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::rc::Rc;

use inpage::api::{ModelState, SystemHost};
use inpage::runtime::ServedHandler;
use limits::Limits;
use options::{Options, USAGE};
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::task::{LocalSet, spawn_local};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

async fn run(options: Options) -> Outcome<()> {
    // The port is bound first, so that a port in use fails before a load that may take minutes.
    let listener = TcpListener::bind(("127.0.0.1", options.port))
        .await
        .map_err(|error| {
            format!(
                "port {}: {error}; choose another with --port (0 selects any free one)",
                options.port
            )
        })?;
    let address = listener.local_addr()?;
    let switches = options.switches.clone();
    let handler = Rc::new(ServedHandler::new(switches, Rc::new(SystemHost)));
    let served = load::load_and_serve(&options, &handler).await?;
    spawn_local(server::accept(
        listener,
        Rc::clone(&handler),
        Rc::new(options.access),
        Rc::new(Limits::default()),
    ));

    println!("listening on http://{address}");
    std::io::stdout().flush()?;
    if std::io::stderr().is_terminal() {
        eprintln!(
            "try it:  curl http://{address}/v1/completions -H 'content-type: application/json' \\\n\
             \x20        -d '{{\"model\":\"default\",\"prompt\":\"Once upon a time\",\"stream\":true}}'\n\
             Ctrl-C stops."
        );
    }
    // The engine is polled here and not as one of the server's tasks, so that the runtime polls its
    // sockets between two steps of the model.
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => return Ok(interrupted?),
        ended = served.engine.run() => if let Err(error) = ended {
            eprintln!("{error}");
            let state = ModelState::Failed(error.to_string());
            handler.set_model(&options.model_id, state);
        }
    }
    // Without its engine, the endpoint still reports why it cannot answer.
    Ok(tokio::signal::ctrl_c().await?)
}

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("{message}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    match LocalSet::new().block_on(&runtime, run(options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
