//! Dispatches Flight requests and Flight SQL commands.

use std::sync::Arc;

use arrow::datatypes::Schema;
use arrow::ipc::writer::IpcWriteOptions;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::{
    ActionCancelQueryRequest, ActionCancelQueryResult, ActionClosePreparedStatementRequest,
    ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult, Any, Command,
    DoPutPreparedStatementResult, DoPutUpdateResult, ProstMessageExt, TicketStatementQuery,
};
use arrow_flight::{
    Action, ActionType, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, Criteria,
    Empty, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo, HandshakeRequest,
    HandshakeResponse, IpcMessage, PollInfo, PutResult, SchemaAsIpc, SchemaResult, Ticket,
};
use bytes::Bytes;
use datafusion::execution::memory_pool::MemoryConsumer;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use prost::Message;
use tonic::{Request, Response, Status, Streaming};

use super::commands::answer_command;
use super::ingest::{FlightMessages, read_parameters};
use super::parameters::{estimate_bytes, to_arguments};
use super::query::QueryEngine;
use super::ready_result::ReadyResult;
use super::request_origin::{Caller, find_connection};
use super::sessions::{ServerSession, ServerSessions, find_cookie, format_cookie};
use super::statement::{BoundRows, find_schema, parse_complete, prepare_statement, to_plan_status};
use super::status::{NO_TRANSACTIONS, to_invalid, to_status};

/// Maximum number of rows of parameter values that a client can bind to a prepared statement.
const MAX_PARAMETER_ROWS: usize = 1 << 16;

const ACTIONS: [(&str, &str); 5] = [
    ("CreatePreparedStatement", "Prepares a statement"),
    ("ClosePreparedStatement", "Closes a prepared statement"),
    ("CancelFlightInfo", "Stops the query of a FlightInfo"),
    ("CancelQuery", "Stops the query of a FlightInfo"),
    ("CloseSession", "Ends the session with its queries, tables and settings"),
];

#[derive(Debug)]
pub(super) struct SqlService {
    sessions: Arc<ServerSessions>,
    engine: Arc<QueryEngine>,
}

type ServiceAnswer<T> = Result<Response<T>, Status>;
type ResultStream<T> = BoxStream<'static, Result<T, Status>>;

impl SqlService {
    pub(super) fn new(sessions: Arc<ServerSessions>, engine: Arc<QueryEngine>) -> Self {
        Self { sessions, engine }
    }

    /// Returns the session of a request. Also returns a cookie with the key of the session for the
    /// response, or `None` if the request already has a cookie or a session key.
    async fn find_session<T>(
        &self,
        request: &Request<T>,
    ) -> Result<(Arc<ServerSession>, Option<String>), Status> {
        let (extensions, metadata) = (request.extensions(), request.metadata());
        let session = self.sessions.find_session(extensions, metadata).await?;
        let named = matches!(extensions.get::<Caller>(), Some(Caller::OfSession(_)));
        let cookie = (!named && find_cookie(metadata).is_none()).then(|| format_cookie(&session));
        Ok((session, cookie))
    }

    async fn describe_result(
        &self,
        session: &Arc<ServerSession>,
        descriptor: FlightDescriptor,
    ) -> Result<FlightInfo, Status> {
        let any = decode_any(&descriptor.cmd)?;
        let (schema, ticket) = match to_command(any.clone())? {
            Command::CommandStatementQuery(query) => {
                refuse_transaction(query.transaction_id.as_ref())?;
                let parse = move |ctx: &_| {
                    let parsed = parse_complete(ctx, &query.query).map_err(|e| to_status(&e))?;
                    Ok(vec![parsed])
                };
                let ready = self.engine.start_statements(session, parse).await?;
                self.keep_result(session, ready)?
            }
            Command::CommandPreparedStatementQuery(query) => {
                let handle = to_text(&query.prepared_statement_handle)?;
                let statement = session.find_statement(&handle)?;
                let ready =
                    self.engine.start_statements(session, move |_| statement.bind_rows()).await?;
                self.keep_result(session, ready)?
            }
            command => {
                let rows = answer_command(&self.engine, session, command).await?;
                (rows.schema(), any.encode_to_vec())
            }
        };
        let endpoint = FlightEndpoint::new().with_ticket(Ticket::new(ticket));
        let info = FlightInfo::new().try_with_schema(&schema).map_err(convert_schema_error)?;
        Ok(info.with_endpoint(endpoint).with_descriptor(descriptor).with_ordered(true))
    }

    fn keep_result(
        &self,
        session: &Arc<ServerSession>,
        ready: ReadyResult,
    ) -> Result<(Arc<Schema>, Vec<u8>), Status> {
        let schema = Arc::clone(&ready.schema);
        let id = session.keep_result(ready)?;
        let ticket = TicketStatementQuery { statement_handle: id.into() };
        Ok((schema, ticket.as_any().encode_to_vec()))
    }

    async fn put_messages(
        &self,
        session: &Arc<ServerSession>,
        first: FlightData,
        rest: Streaming<FlightData>,
    ) -> Result<Bytes, Status> {
        let descriptor = first.flight_descriptor.clone();
        let command = descriptor
            .ok_or_else(|| {
                to_invalid(
                    "the first message of the stream has no command; use a client of Flight SQL",
                )
            })?
            .cmd;
        let messages: FlightMessages = stream::once(async { Ok(first) }).chain(rest).boxed();
        let changed = match to_command(decode_any(&command)?)? {
            Command::CommandStatementUpdate(update) => {
                refuse_transaction(update.transaction_id.as_ref())?;
                let parse = move |ctx: &_| {
                    let parsed = parse_complete(ctx, &update.query).map_err(|e| to_status(&e))?;
                    Ok(vec![parsed])
                };
                self.engine.run_updates(session, parse).await?
            }
            Command::CommandPreparedStatementUpdate(update) => {
                let handle = to_text(&update.prepared_statement_handle)?;
                bind_messages(session, &handle, messages).await?;
                let statement = session.find_statement(&handle)?;
                self.engine.run_updates(session, move |_| statement.bind_rows()).await?
            }
            Command::CommandPreparedStatementQuery(query) => {
                let handle = to_text(&query.prepared_statement_handle)?;
                bind_messages(session, &handle, messages).await?;
                let bound = DoPutPreparedStatementResult {
                    prepared_statement_handle: Some(query.prepared_statement_handle),
                };
                return Ok(bound.encode_to_vec().into());
            }
            Command::CommandStatementIngest(command) => {
                self.engine.run_ingestion(session, command, messages).await?
            }
            other => return Err(make_unknown_command_status(&other)),
        };
        Ok(DoPutUpdateResult { record_count: changed }.encode_to_vec().into())
    }

    async fn run_action(
        &self,
        session: &Arc<ServerSession>,
        action: Action,
    ) -> Result<Option<Bytes>, Status> {
        match action.r#type.as_str() {
            "CreatePreparedStatement" => {
                let request: ActionCreatePreparedStatementRequest = unpack_body(&action.body)?;
                refuse_transaction(request.transaction_id.as_ref())?;
                let prepared = self.prepare_query(session, request.query).await?;
                Ok(Some(prepared.as_any().encode_to_vec().into()))
            }
            "ClosePreparedStatement" => {
                let request: ActionClosePreparedStatementRequest = unpack_body(&action.body)?;
                session.close_statement(&to_text(&request.prepared_statement_handle)?);
                Ok(None)
            }
            "CancelFlightInfo" => {
                let request =
                    CancelFlightInfoRequest::decode(action.body).map_err(convert_decode_error)?;
                let status = match cancel_info(session, request.info.as_ref())? {
                    true => CancelStatus::Cancelled,
                    false => return Err(make_nothing_to_cancel_status()),
                };
                Ok(Some(CancelFlightInfoResult::new(status).encode_to_vec().into()))
            }
            "CancelQuery" => {
                let request: ActionCancelQueryRequest = unpack_body(&action.body)?;
                let info = FlightInfo::decode(request.info).map_err(convert_decode_error)?;
                if !cancel_info(session, Some(&info))? {
                    return Err(make_nothing_to_cancel_status());
                }
                // 1 is CANCEL_RESULT_CANCELLED of an enum that arrow-flight does not export.
                let result = ActionCancelQueryResult { result: 1 };
                Ok(Some(result.as_any().encode_to_vec().into()))
            }
            "CloseSession" => {
                self.sessions.end_session(session.session_key());
                // These bytes encode a CloseSessionResult with the status CLOSED. arrow-flight does
                // not have this type.
                Ok(Some(Bytes::from_static(&[0x08, 0x01])))
            }
            "BeginTransaction" | "EndTransaction" | "BeginSavepoint" | "EndSavepoint" => {
                Err(Status::unimplemented(NO_TRANSACTIONS))
            }
            other => Err(Status::unimplemented(format!(
                "the server does not support the action {}; it supports {}",
                other.chars().take(64).collect::<String>(),
                ACTIONS.map(|(name, _)| name).join(", ")
            ))),
        }
    }

    async fn prepare_query(
        &self,
        session: &Arc<ServerSession>,
        query: String,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        let (engine, own) = (Arc::clone(&self.engine), Arc::clone(session));
        let prepared = self.engine.run(async move {
            let _open = own.open_query(None);
            let _place = engine.admission.wait_for_turn().await?;
            prepare_statement(own.session_context(), &query).await.map_err(|e| to_plan_status(&e))
        });
        let (statement, types) = prepared.await?;
        let handle = session.keep_statement(statement)?;
        let result = types.result.map(|schema| to_ipc(&schema)).transpose()?;
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle: handle.into(),
            dataset_schema: result.unwrap_or_default(),
            parameter_schema: to_ipc(&types.parameters)?,
        })
    }
}

async fn bind_messages(
    session: &Arc<ServerSession>,
    handle: &str,
    messages: FlightMessages,
) -> Result<(), Status> {
    let statement = session.find_statement(handle)?;
    // For a statement without parameters, clients send no message, or one without a schema. There
    // is then nothing to bind.
    let mut messages = messages.peekable();
    let first = std::pin::Pin::new(&mut messages).peek().await;
    if first.is_none_or(|m| m.as_ref().is_ok_and(|m| m.data_header.is_empty())) {
        return Ok(());
    }
    let runtime = session.session_context().runtime_env();
    let memory = MemoryConsumer::new("parameters").register(&runtime.memory_pool);
    let mut rows = Vec::new();
    for batch in read_parameters(messages.boxed()).await? {
        if batch.num_columns() != statement.count {
            return Err(to_invalid(format!(
                "the statement has {} parameter(s), but a bound row has {} value(s); bind one value per parameter",
                statement.count,
                batch.num_columns()
            )));
        }
        if rows.len().saturating_add(batch.num_rows()) > MAX_PARAMETER_ROWS {
            return Err(to_invalid(format!(
                "more than {MAX_PARAMETER_ROWS} rows of parameter values are bound; load them into a table, and join that table"
            )));
        }
        memory.try_grow(estimate_bytes(&batch)).map_err(|e| to_status(&e))?;
        rows.extend(to_arguments(&batch).map_err(|e| to_status(&e))?);
    }
    statement.set_rows(BoundRows::new(rows, memory));
    Ok(())
}

/// Stops the queries whose results a FlightInfo describes. Returns false if the session has none of
/// these queries.
fn cancel_info(session: &ServerSession, info: Option<&FlightInfo>) -> Result<bool, Status> {
    let mut found = false;
    for endpoint in info.iter().flat_map(|info| &info.endpoint) {
        let Some(ticket) = &endpoint.ticket else { continue };
        if let Command::TicketStatementQuery(ticket) = to_command(decode_any(&ticket.ticket)?)? {
            found |= session.cancel_query(&to_text(&ticket.statement_handle)?);
        }
    }
    Ok(found)
}

fn make_nothing_to_cancel_status() -> Status {
    Status::not_found(
        "no such query runs in this session; it has ended, or another session runs it",
    )
}

fn make_unknown_command_status(command: &Command) -> Status {
    Status::unimplemented(format!(
        "the server does not support the command {} in DoPut; send SQL text instead",
        command.type_url()
    ))
}

fn refuse_transaction(id: Option<&Bytes>) -> Result<(), Status> {
    match id.is_some_and(|id| !id.is_empty()) {
        true => Err(to_invalid(NO_TRANSACTIONS)),
        false => Ok(()),
    }
}

fn decode_any(bytes: &[u8]) -> Result<Any, Status> {
    Any::decode(bytes).map_err(convert_decode_error)
}

fn to_command(any: Any) -> Result<Command, Status> {
    Command::try_from(any).map_err(|e| {
        to_invalid(format!(
            "the request is not a command of Flight SQL: {e}; use a client of Flight SQL"
        ))
    })
}

fn unpack_body<T: ProstMessageExt>(body: &[u8]) -> Result<T, Status> {
    let unpacked = decode_any(body)?.unpack().map_err(convert_decode_error)?;
    unpacked.ok_or_else(|| {
        to_invalid(
            "the body of the action does not have the type that belongs to the name of the action; use a client of Flight SQL",
        )
    })
}

fn convert_decode_error(e: impl std::fmt::Display) -> Status {
    to_invalid(format!("the request cannot be decoded: {e}; use a client of Flight SQL"))
}

fn convert_schema_error(e: arrow::error::ArrowError) -> Status {
    to_invalid(format!(
        "the schema of the result cannot be sent; cast the columns to other types: {e}"
    ))
}

fn to_text(handle: &Bytes) -> Result<String, Status> {
    let text = std::str::from_utf8(handle);
    text.map(str::to_owned).map_err(|_| to_invalid("the handle was not returned by this server; use the handle of a prepared statement or a result"))
}

fn to_ipc(schema: &Schema) -> Result<Bytes, Status> {
    let options = IpcWriteOptions::default();
    let IpcMessage(bytes) =
        SchemaAsIpc::new(schema, &options).try_into().map_err(convert_schema_error)?;
    Ok(bytes)
}

fn build_response<T>(value: T, cookie: Option<String>) -> Response<T> {
    let mut response = Response::new(value);
    if let Some(cookie) = cookie.and_then(|cookie| cookie.parse().ok()) {
        response.metadata_mut().insert("set-cookie", cookie);
    }
    response
}

fn wrap_stream_item<T: Send + 'static>(value: T) -> ResultStream<T> {
    stream::once(async { Ok(value) }).boxed()
}

#[tonic::async_trait]
impl FlightService for SqlService {
    type HandshakeStream = ResultStream<HandshakeResponse>;
    type ListFlightsStream = ResultStream<FlightInfo>;
    type DoGetStream = ResultStream<FlightData>;
    type DoPutStream = ResultStream<PutResult>;
    type DoActionStream = ResultStream<arrow_flight::Result>;
    type ListActionsStream = ResultStream<ActionType>;
    type DoExchangeStream = ResultStream<FlightData>;

    async fn handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> ServiceAnswer<Self::HandshakeStream> {
        if !matches!(request.extensions().get::<Caller>(), Some(Caller::Client)) {
            return Err(Status::unauthenticated(
                "the handshake lacks a user name and a password; send them in its header `authorization`",
            ));
        }
        let connection = find_connection(request.extensions())?;
        let sessions = Arc::clone(&self.sessions);
        let created = async move { sessions.create_session(None).await };
        let session = self.engine.run(created).await?;
        // If the connection closes, and no other one uses the session, the session ends soon.
        self.sessions.find_open(session.session_key(), connection)?;
        let payload = Bytes::from(session.session_key().to_owned());
        let mut response =
            Response::new(wrap_stream_item(HandshakeResponse { protocol_version: 0, payload }));
        let bearer = format!("Bearer {}", session.session_key()).parse();
        let bearer = bearer.map_err(|_| Status::internal("internal error: the key of a session is not valid in an HTTP header; please report it"))?;
        response.metadata_mut().insert("authorization", bearer);
        Ok(response)
    }

    async fn list_flights(
        &self,
        _request: Request<Criteria>,
    ) -> ServiceAnswer<Self::ListFlightsStream> {
        Err(Status::unimplemented(
            "the server does not support ListFlights; request the tables with CommandGetTables",
        ))
    }

    async fn get_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> ServiceAnswer<FlightInfo> {
        let (session, cookie) = self.find_session(&request).await?;
        let info = self.describe_result(&session, request.into_inner()).await?;
        Ok(build_response(info, cookie))
    }

    async fn poll_flight_info(
        &self,
        _request: Request<FlightDescriptor>,
    ) -> ServiceAnswer<PollInfo> {
        Err(Status::unimplemented("the server does not support PollFlightInfo; use GetFlightInfo"))
    }

    async fn get_schema(&self, request: Request<FlightDescriptor>) -> ServiceAnswer<SchemaResult> {
        let (session, cookie) = self.find_session(&request).await?;
        let own = Arc::clone(&session);
        let schema = match to_command(decode_any(&request.into_inner().cmd)?)? {
            Command::CommandStatementQuery(query) => {
                let found = async move {
                    let ctx = own.session_context();
                    let statement = parse_complete(ctx, &query.query).map_err(|e| to_status(&e))?;
                    find_schema(ctx, statement).await.map_err(|e| to_plan_status(&e))
                };
                self.engine.run(found).await?
            }
            Command::CommandPreparedStatementQuery(query) => {
                let handle = to_text(&query.prepared_statement_handle)?;
                let statements = own.find_statement(&handle)?.bind_rows()?;
                let first = statements
                    .into_iter()
                    .next()
                    .ok_or_else(|| to_invalid("no row of parameter values is bound; bind one"))?;
                let found = async move {
                    find_schema(own.session_context(), first).await.map_err(|e| to_plan_status(&e))
                };
                self.engine.run(found).await?
            }
            command => answer_command(&self.engine, &session, command).await?.schema(),
        };
        Ok(build_response(SchemaResult { schema: to_ipc(&schema)? }, cookie))
    }

    async fn do_get(&self, request: Request<Ticket>) -> ServiceAnswer<Self::DoGetStream> {
        let (session, cookie) = self.find_session(&request).await?;
        let messages = match to_command(decode_any(&request.into_inner().ticket)?)? {
            Command::TicketStatementQuery(ticket) => {
                let id = to_text(&ticket.statement_handle)?;
                let ready = session.take_result(&id)?;
                self.engine.send_messages(&session, &id, ready)?
            }
            command => {
                let rows = answer_command(&self.engine, &session, command).await?;
                self.engine.send_rows(rows)?
            }
        };
        Ok(build_response(messages, cookie))
    }

    async fn do_put(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> ServiceAnswer<Self::DoPutStream> {
        let (session, cookie) = self.find_session(&request).await?;
        let mut messages = request.into_inner();
        let first = messages.message().await?;
        let first = first.ok_or_else(|| {
            to_invalid("the stream of the request has no message; use a client of Flight SQL")
        })?;
        let app_metadata = self.put_messages(&session, first, messages).await?;
        Ok(build_response(wrap_stream_item(PutResult { app_metadata }), cookie))
    }

    async fn do_action(&self, request: Request<Action>) -> ServiceAnswer<Self::DoActionStream> {
        let (session, cookie) = self.find_session(&request).await?;
        let body = self.run_action(&session, request.into_inner()).await?;
        let results: Self::DoActionStream = match body {
            Some(body) => wrap_stream_item(arrow_flight::Result { body }),
            None => stream::empty().boxed(),
        };
        Ok(build_response(results, cookie))
    }

    async fn list_actions(
        &self,
        _request: Request<Empty>,
    ) -> ServiceAnswer<Self::ListActionsStream> {
        let actions = ACTIONS.map(|(name, what)| {
            Ok(ActionType { r#type: name.to_owned(), description: what.to_owned() })
        });
        Ok(Response::new(stream::iter(actions).boxed()))
    }

    async fn do_exchange(
        &self,
        _request: Request<Streaming<FlightData>>,
    ) -> ServiceAnswer<Self::DoExchangeStream> {
        Err(Status::unimplemented("the server does not support DoExchange; use DoPut and DoGet"))
    }
}
