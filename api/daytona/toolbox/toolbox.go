// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package toolbox serves the operations of Daytona's clients inside a sandbox: commands, code, sessions, terminals,
// files, git, language servers. Paths are below the sandbox's own: the coat mounts them, see package daytona.
package toolbox

import (
	"context"
	"net/http"
	"slices"

	"sandpit.dev/api/daytona/lacking"
	"sandpit.dev/api/filelink"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/service"
	"sandpit.dev/fault"
)

// Options configure [New]. All fields are required.
type Options struct {
	Services service.Services
	Guard    *guard.Guard
	Files    *filelink.Links
}

// API serves the operations. It is safe for concurrent use.
type API struct {
	service.Services
	guard *guard.Guard
	links *filelink.Links
}

// New returns the toolbox of a server's sandboxes.
func New(o Options) *API { return &API{o.Services, o.Guard, o.Files} }

// byRef is the input of operations that need nothing but a sandbox, by its id or name.
type byRef struct {
	Ref string `path:"id"`
}

// op returns an operation. code adds to its errors the codes that clients have classes for.
func op[In, Out any](id, pattern string, status int, code func(error) error, serve func(context.Context, *httpapi.Call, *In) (Out, error)) httpapi.Operation {
	return httpapi.Bounded(id, pattern, "", status, func(ctx context.Context, c *httpapi.Call, in *In) (Out, error) {
		out, err := serve(ctx, c, in)
		return out, code(err)
	})
}

// transfer is op for files whose bytes are the body or the answer.
func transfer[In any](id, pattern string, serve func(context.Context, *httpapi.Call, *In) error) httpapi.Operation {
	return httpapi.Raw(id, pattern, "", http.StatusOK, bounded(serve))
}

// bounded returns what serves a transfer until its end or that of the handler.
func bounded[In any](serve func(context.Context, *httpapi.Call, *In) error) func(context.Context, *httpapi.Call, *In) error {
	return func(ctx context.Context, c *httpapi.Call, in *In) error {
		ctx, end := c.Bound(ctx)
		defer end()
		return fileError(httpapi.Cause(ctx, serve(ctx, c, in)))
	}
}

// noCode returns an error unchanged.
func noCode(err error) error { return err }

// withCode returns an error with the clients' code.
func withCode(err error, code string) error {
	e := *fault.As(err)
	return (&e).WithReason(code)
}

// Operations returns all operations of the toolbox.
func (a *API) Operations() []httpapi.Operation {
	return slices.Concat(a.gitOperations(), a.codeOperations(), a.languageOperations(), lacking.Operations("toolbox", lackingOperations()), []httpapi.Operation{
		op("toolboxExecute", "POST /process/execute", http.StatusOK, noCode, a.execute).MaxBody(maxCommand),
		op("toolboxCreateSession", "POST /process/session", http.StatusCreated, noCode, a.createSession),
		op("toolboxListSessions", "GET /process/session", http.StatusOK, noCode, a.listSessions),
		op("toolboxGetEntrypoint", "GET /process/session/entrypoint", http.StatusOK, noCode, a.getEntrypoint),
		httpapi.Raw("toolboxEntrypointLogs", "GET /process/session/entrypoint/logs", "", http.StatusOK, a.entrypointLogs).ReadsContent(),
		op("toolboxGetSession", "GET /process/session/{session}", http.StatusOK, noCode, a.getSession),
		op("toolboxDeleteSession", "DELETE /process/session/{session}", http.StatusNoContent, noCode, a.deleteSession),
		op("toolboxSessionExec", "POST /process/session/{session}/exec", http.StatusOK, noCode, a.sessionExec).MaxBody(maxCommand),
		op("toolboxSessionCommand", "GET /process/session/{session}/command/{command}", http.StatusOK, noCode, a.getCommand),
		httpapi.Raw("toolboxSessionLogs", "GET /process/session/{session}/command/{command}/logs", "", http.StatusOK, a.commandLogs).ReadsContent(),
		op("toolboxSessionInput", "POST /process/session/{session}/command/{command}/input", http.StatusNoContent, noCode, a.commandInput).MaxBody(maxCommand),
		op("toolboxCreateTerminal", "POST /process/pty", http.StatusCreated, noCode, a.createTerminal),
		op("toolboxListTerminals", "GET /process/pty", http.StatusOK, noCode, a.listTerminals),
		httpapi.Raw("toolboxConnectNew", "GET /process/pty/create-connect", "", http.StatusSwitchingProtocols, a.connectNew).ReadsContent(),
		op("toolboxGetTerminal", "GET /process/pty/{terminal}", http.StatusOK, noCode, a.getTerminal),
		op("toolboxKillTerminal", "DELETE /process/pty/{terminal}", http.StatusOK, noCode, a.killTerminal),
		op("toolboxResizeTerminal", "POST /process/pty/{terminal}/resize", http.StatusOK, noCode, a.resizeTerminal),
		httpapi.Raw("toolboxConnect", "GET /process/pty/{terminal}/connect", "", http.StatusSwitchingProtocols, a.connectTerminal).ReadsContent(),
		op("toolboxMetrics", "GET /system/metrics", http.StatusOK, noCode, a.metrics),
		op("toolboxPorts", "GET /port", http.StatusOK, noCode, a.ports).ReadsContent(),
		op("toolboxPortInUse", "GET /port/{port}/in-use", http.StatusOK, noCode, a.portInUse).ReadsContent(),
		op("toolboxUpdateEnv", "POST /env", http.StatusOK, noCode, a.updateEnv),
		op("toolboxHome", "GET /user-home-dir", http.StatusOK, noCode, a.home),
		op("toolboxWorkDir", "GET /work-dir", http.StatusOK, noCode, a.workDir),
		op("toolboxProjectDir", "GET /project-dir", http.StatusOK, noCode, a.workDir),
		op("toolboxListFiles", "GET /files", http.StatusOK, fileError, a.listFiles).ReadsContent(),
		op("toolboxFileInfo", "GET /files/info", http.StatusOK, fileError, a.fileInfo),
		op("toolboxMakeFolder", "POST /files/folder", http.StatusCreated, fileError, a.makeFolder),
		op("toolboxDeleteFile", "DELETE /files", http.StatusNoContent, fileError, a.deleteFile),
		op("toolboxMoveFile", "POST /files/move", http.StatusOK, fileError, a.moveFile),
		op("toolboxFindFiles", "GET /files/find", http.StatusOK, fileError, a.findInFiles).ReadsContent(),
		op("toolboxSearchFiles", "GET /files/search", http.StatusOK, fileError, a.searchFiles).ReadsContent(),
		op("toolboxReplace", "POST /files/replace", http.StatusOK, fileError, a.replaceInFiles),
		op("toolboxPermissions", "POST /files/permissions", http.StatusOK, fileError, a.setPermissions),
		transfer("toolboxUpload", "POST /files/bulk-upload", a.upload),
		transfer("toolboxUploadOne", "POST "+uploadOnePath, a.uploadOne),
		transfer("toolboxDownload", "POST /files/bulk-download", a.download).ReadsContent(),
		transfer("toolboxDownloadOne", "GET "+downloadOnePath, a.downloadOne).ReadsContent(),
	})
}
