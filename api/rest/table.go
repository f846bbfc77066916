// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"reflect"

	v1 "sandpit.dev/api/v1"
)

// operations is the table: all that /v1 can do.
func (a *API) operations() []operation {
	const anyBytes = "application/octet-stream"
	return []operation{
		op("createSandbox", "POST /sandboxes", "Create a sandbox, or get the one that has the key.", http.StatusCreated, a.createSandbox).
			withAlso(http.StatusOK, "", reflect.TypeFor[v1.Sandbox](), "The key is known: that sandbox, started if it was stopped.").
			withExample(v1.CreateSandbox{Image: new("python"), MemoryMB: new(512), IdleTimeoutSeconds: new(int64(1800)), Key: new("agent-session-abc")}),
		op("listSandboxes", "GET /sandboxes", "List sandboxes, newest first.", http.StatusOK, a.listSandboxes),
		op("getSandbox", "GET /sandboxes/{id}", "Get a sandbox.", http.StatusOK, a.getSandbox),
		op("updateSandbox", "PATCH /sandboxes/{id}", "Change a sandbox.", http.StatusOK, a.updateSandbox).
			withExample(v1.UpdateSandbox{IdleTimeoutSeconds: new(int64(3600))}),
		op("deleteSandbox", "DELETE /sandboxes/{id}", "Delete a sandbox and all that is in it.", http.StatusNoContent, a.deleteSandbox),
		op("startSandbox", "POST /sandboxes/{id}/start", "Start a stopped sandbox. One that runs is no error.", http.StatusOK, a.startSandbox),
		op("stopSandbox", "POST /sandboxes/{id}/stop", "Stop a sandbox: its processes end, its files stay.", http.StatusOK, a.stopSandbox),
		op("listActivity", "GET /sandboxes/{id}/activity", "What happened to a sandbox, newest first.", http.StatusOK, a.listActivity),

		raw("exec", "POST /sandboxes/{id}/exec", "Run a command. With Accept: text/event-stream its output is streamed: events stdout and stderr (Output), then exit (ExecOutcome) or error (Problem).", http.StatusOK, a.exec).
			withOut(reflect.TypeFor[v1.ExecResult]()).withBig().
			withAlso(http.StatusOK, "text/event-stream", nil, "").
			withAlso(http.StatusAccepted, "", reflect.TypeFor[v1.ExecResult](), "It still runs after wait_seconds.").
			withExample(v1.Exec{Command: new("python main.py"), TimeoutSeconds: new(300.0)}),
		op("listProcesses", "GET /sandboxes/{id}/processes", "List a sandbox's commands.", http.StatusOK, a.listProcesses),
		op("getProcess", "GET /sandboxes/{id}/processes/{pid}", "Get a command.", http.StatusOK, a.getProcess),
		op("killProcess", "DELETE /sandboxes/{id}/processes/{pid}", "Kill a command and all that it started.", http.StatusNoContent, a.killProcess),
		raw("openTerminal", "GET /sandboxes/{id}/terminal", "Open a terminal: a WebSocket whose binary messages are its bytes, both ways, and whose text messages are TerminalControl.", http.StatusSwitchingProtocols, a.openTerminal),

		raw("readOrListFiles", "GET /sandboxes/{id}/files", "List a directory as an array of FileEntry (of FileInfo with detail=true), or read a file as FileContent.", http.StatusOK, a.readOrList).
			withOut(reflect.TypeFor[[]v1.FileEntry]()).
			withAlso(http.StatusOK, "", reflect.TypeFor[[]v1.FileInfo](), "").
			withAlso(http.StatusOK, "", reflect.TypeFor[v1.FileContent](), ""),
		op("writeFileJSON", "POST /sandboxes/{id}/files", "Write a file from JSON.", http.StatusOK, a.writeFileJSON).withBig().
			withAlso(http.StatusCreated, "", reflect.TypeFor[v1.FileInfo](), "The file is new.").
			withExample(v1.WriteFile{Path: new("main.py"), Content: new("print('hi')\n")}),
		raw("writeFileByQuery", "PUT /sandboxes/{id}/files", "Write a file from the raw body.", http.StatusNoContent, a.writeFile).withRaw(anyBytes, ""),
		op("deleteFileByQuery", "DELETE /sandboxes/{id}/files", "Delete a file or a directory.", http.StatusNoContent, a.removeFile),
		raw("readFile", "GET /sandboxes/{id}/files/{path...}", "Read a file raw; ranges work. A directory is listed as an array.", http.StatusOK, a.readFile).
			withRaw("", anyBytes).
			withAlso(http.StatusPartialContent, anyBytes, nil, "The range that was asked for.").
			withAlso(http.StatusNotModified, "", nil, "It is the one that If-None-Match names."),
		raw("writeFile", "PUT /sandboxes/{id}/files/{path...}", "Write a file from the raw body.", http.StatusNoContent, a.writeFile).withRaw(anyBytes, ""),
		op("deleteFile", "DELETE /sandboxes/{id}/files/{path...}", "Delete a file or a directory.", http.StatusNoContent, a.removeFile),
		op("statFile", "GET /sandboxes/{id}/stat", "All about a file; a link is not followed.", http.StatusOK, a.statFile),
		op("makeDir", "POST /sandboxes/{id}/mkdir", "Make a directory.", http.StatusNoContent, a.makeDir).
			withExample(v1.MakeDir{Path: "outputs/charts"}),
		op("moveFile", "POST /sandboxes/{id}/move", "Rename or move a file or a directory.", http.StatusNoContent, a.moveFile).
			withExample(v1.MoveFile{From: "draft.csv", To: "report.csv"}),

		op("listTokens", "GET /tokens", "List tokens.", http.StatusOK, a.listTokens),
		op("createToken", "POST /tokens", "Make a token.", http.StatusCreated, a.createToken).
			withExample(v1.CreateToken{Name: "laptop", Scopes: []string{"sandboxes:read", "sandboxes:write"}}),
		op("deleteToken", "DELETE /tokens/{id}", "End a token, by its id or its name.", http.StatusNoContent, a.deleteToken),
		op("listImages", "GET /images", "List what sandboxes can run on.", http.StatusOK, a.listImages),
		op("buildImage", "POST /images/{name}/build", "Build an image. The build goes on whether one waits or not.", http.StatusOK, a.buildImage).
			withAlso(http.StatusAccepted, "", reflect.TypeFor[v1.Image](), "It goes on; GET /images shows how far it is."),
		op("getInfo", "GET /info", "What this server is and can do.", http.StatusOK, a.getInfo),
		op("getLimits", "GET /limits", "What a sandbox may ask for.", http.StatusOK, a.getLimits),
		raw("getOpenAPI", "GET /openapi.json", "This document.", http.StatusOK, a.getOpenAPI).withRaw("", "application/json").openly(),
	}
}
