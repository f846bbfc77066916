// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/shape"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/keyed"
)

func (a *API) getOpenAPI(_ context.Context, c *idempotency.Call, _ *httpapi.NoInput) error {
	h := c.W.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(a.document)))
	c.W.WriteHeader(http.StatusOK)
	_, _ = c.W.Write(a.document) // the client went away: nothing to tell
	return nil
}

// document is what the OpenAPI document says beside the table.
func document(version string) httpapi.Document {
	return httpapi.Document{
		Info: map[string]any{
			"title":       "sandpit",
			"version":     version,
			"description": "Persistent, isolated Linux sandboxes. " + errorTable(),
			"license":     map[string]any{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		Bases: bases(), Types: reflect.TypeFor[v1.Sandbox]().PkgPath(),
		Error: reflect.TypeFor[v1.Problem](), ErrorMedia: v1.ProblemType,
		Also:   []reflect.Type{reflect.TypeFor[v1.TerminalControl](), reflect.TypeFor[v1.ProcessControl](), reflect.TypeFor[v1.FrameEvent]()},
		Bounds: bounds, Enums: enums(), Parameters: headers,
	}
}

// eventTypes are the types of the data of streams' events, by the events' names.
type eventTypes = map[string]reflect.Type

// commandEventTypes are those of a command whose last event is an outcome.
func commandEventTypes(outcome reflect.Type) eventTypes {
	output := reflect.TypeFor[v1.Output]()
	return eventTypes{v1.StreamStart: reflect.TypeFor[v1.ExecStarted](), v1.StreamStdout: output, v1.StreamStderr: output, v1.StreamExit: outcome}
}

// followEventTypes are those of a process that is followed.
func followEventTypes() eventTypes {
	output := reflect.TypeFor[v1.Output]()
	return eventTypes{
		v1.StreamStdout: output, v1.StreamStderr: output, v1.StreamGap: reflect.TypeFor[v1.OutputGap](),
		v1.StreamExit: reflect.TypeFor[v1.Process](), v1.StreamEnd: reflect.TypeFor[v1.OutputEnd](),
	}
}

// codeEventTypes are those of code.
func codeEventTypes() eventTypes {
	output := reflect.TypeFor[v1.Output]()
	return eventTypes{
		v1.StreamStart: reflect.TypeFor[v1.CodeStarted](), v1.StreamStdout: output, v1.StreamStderr: output,
		v1.StreamResult: reflect.TypeFor[v1.CodeValue](), v1.StreamEnd: reflect.TypeFor[v1.CodeOutcome](),
	}
}

// runEventTypes are those of a run.
func runEventTypes() eventTypes {
	output, ended := reflect.TypeFor[v1.CommandOutput](), reflect.TypeFor[v1.RunEnded]()
	return eventTypes{
		v1.RunEventStarted: reflect.TypeFor[v1.RunStarted](), v1.RunEventCommandStarted: reflect.TypeFor[v1.CommandStarted](),
		v1.RunEventCommandStdout: output, v1.RunEventCommandStderr: output,
		v1.RunEventCommandFinished: reflect.TypeFor[v1.CommandFinished](), v1.RunEventExtracted: reflect.TypeFor[v1.ArtifactsExtracted](),
		v1.RunEventFinished: ended, v1.RunEventFailed: ended, v1.RunEventError: reflect.TypeFor[v1.RunStreamError](),
	}
}

// errorTable says which code comes with which status, from the table itself.
func errorTable() string {
	var parts []string
	for _, c := range fault.Codes() {
		parts = append(parts, string(c)+" "+strconv.Itoa(guard.Status(c)))
	}
	return "Errors are " + v1.ProblemType + "; their codes and statuses: " + strings.Join(parts, ", ") + "."
}

// keyDoc describes the header that most POSTs take.
const keyDoc = "a text of the client's own choice, for sending the request again where no answer came: for 24 hours the same key with the same body begins nothing a second time and gets the first answer, with the header " + v1.IdempotentReplayed + "; with another body it is refused (422), and while the first is being served, too (409, with Retry-After)"

// headers returns the headers that an operation reads, beside those of all of HTTP.
func headers(o *httpapi.Operation) (all []httpapi.Parameter) {
	if _, ok := o.Extension.(idempotency.Keying); ok {
		all = append(all, httpapi.Parameter{
			In: "header", Name: v1.IdempotencyKey, Description: keyDoc,
			Schema: map[string]any{"type": "string", "minLength": 1, "maxLength": keyed.MaxKey},
		})
	}
	add := func(name, doc string) {
		all = append(all, httpapi.Parameter{In: "header", Name: name, Description: doc, Schema: map[string]any{"type": "string"}})
	}
	switch o.ID {
	case "followProcess", "runEvents":
		add("Last-Event-ID", "the id of the last event that the client has: the stream goes on behind it")
	case "readOrListFiles":
		add("If-None-Match", "of a file, the Etag of what the client has: the same one is not sent again (304)")
	case "writeFile", "writeFileByQuery", "writeFileJSON":
		add("If-Match", "the Etag of the file that is to be replaced, or several, or * for any that is there: another one is left as it is (412, with the Etag that it has). The answer has the Etag of the new one")
		add("If-None-Match", "*: the file is made where there is none, and another is left as it is (412). The answer has its Etag")
	case "deleteFile", "deleteFileByQuery":
		add("If-Match", "the Etag of the file that is to be deleted, or several, or *: another one is left as it is (412, with the Etag that it has)")
	case "readFile", "readSnapshotFile", "readSnapshotFileOf":
		add("Range", "bytes=FIRST-LAST, the part that is answered (206)")
		add("If-Range", "the Etag of the file that Range is of; of another the whole is answered")
		add("If-None-Match", "the Etag of what the client has: the same one is not sent again (304)")
	}
	return all
}

// bounds returns those of a field of a request about sandboxes.
func bounds(t reflect.Type, name string) (least, most *float64) {
	update := t == reflect.TypeFor[v1.UpdateSandbox]()
	if t != reflect.TypeFor[v1.CreateSandbox]() && !update {
		return nil, nil
	}
	switch name {
	case "cpu":
		name = "cpu_cores"
	case "timeout_seconds":
		name = "ttl_seconds"
	}
	b, ok := requestBounds(sandbox.MaxLimits())[name]
	switch {
	case !ok:
		return nil, nil
	case update && name == "ttl_seconds":
		b.Min = 0 // never
	}
	return &b.Min, &b.Max
}

// enums are the fields with a fixed list of values.
func enums() map[string][]any {
	codes := []any{}
	for _, c := range fault.Codes() {
		codes = append(codes, string(c))
	}
	states := []any{string(sandbox.Deleted)} // in the answer to a stop of one with auto_delete
	for _, s := range shape.LiveStates() {
		states = append(states, s)
	}
	return map[string][]any{
		"Problem.code":              codes,
		"Sandbox.status":            states,
		"Sandbox.idle_action":       {"stop", "pause"},
		"Sandbox.checkpoints":       {"off", "command"},
		"Sandbox.ttl_mode":          {"absolute", "sliding", nil},
		"Snapshot.status":           {"creating", "ready", "deleting"},
		"Volume.status":             {"creating", "ready", "deleting"},
		"DiffChange.action":         {"created", "modified", "deleted"},
		"CreateSandbox.idle_action": {"stop", "pause", nil},
		"UpdateSandbox.idle_action": {"stop", "pause", nil},
		"CreateSandbox.ttl_mode":    {"absolute", "sliding", nil},
		"UpdateSandbox.ttl_mode":    {"absolute", "sliding", nil},
		"CreateSandbox.checkpoints": {"off", "command", nil},
		"UpdateSandbox.checkpoints": {"off", "command", nil},
		"ExecOutcome.status":        {"exited", "running"},
		"ExecResult.status":         {"exited", "running"},
		"Process.status":            {"exited", "running"},
		"Image.status":              {"missing", "building", "ready", "failed"},
		"FileChange.action":         {"created", "modified", "deleted"},
		"WatchEvent.type":           {"created", "modified", "deleted", "renamed", "attributes", "dropped"},
		"WatchEnd.reason":           {"removed", "stopped"},
		"FileContent.encoding":      {"base64"},
	}
}
