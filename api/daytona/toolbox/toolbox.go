// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package toolbox serves what Daytona's clients ask of what runs inside a sandbox: commands, code, sessions, terminals,
// files, git. Paths are below the sandbox's own: the coat mounts them, see package daytona.
package toolbox

import (
	"net/http"
	"slices"

	"sandpit.dev/api/daytona/lacking"
	"sandpit.dev/api/filelink"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/service"
)

// Options is what the toolbox is made of. All fields are required.
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

// Operations are the rows of the table.
func (a *API) Operations() []httpapi.Operation {
	return slices.Concat(a.gitOperations(), a.codeOperations(), lacking.Operations("toolbox", lackingOperations()), []httpapi.Operation{
		httpapi.Op("toolboxExecute", "POST /process/execute", "", http.StatusOK, a.execute).MaxBody(maxCommand),
		httpapi.Op("toolboxCreateSession", "POST /process/session", "", http.StatusCreated, a.createSession),
		httpapi.Op("toolboxListSessions", "GET /process/session", "", http.StatusOK, a.listSessions),
		httpapi.Op("toolboxGetSession", "GET /process/session/{session}", "", http.StatusOK, a.getSession),
		httpapi.Op("toolboxDeleteSession", "DELETE /process/session/{session}", "", http.StatusNoContent, a.deleteSession),
		httpapi.Op("toolboxSessionExec", "POST /process/session/{session}/exec", "", http.StatusOK, a.sessionExec).MaxBody(maxCommand),
		httpapi.Op("toolboxSessionCommand", "GET /process/session/{session}/command/{command}", "", http.StatusOK, a.getCommand),
		httpapi.Raw("toolboxSessionLogs", "GET /process/session/{session}/command/{command}/logs", "", http.StatusOK, a.commandLogs).ReadsContent(),
		httpapi.Op("toolboxSessionInput", "POST /process/session/{session}/command/{command}/input", "", http.StatusNoContent, a.commandInput).MaxBody(maxCommand),
		httpapi.Op("toolboxCreateTerminal", "POST /process/pty", "", http.StatusCreated, a.createTerminal),
		httpapi.Op("toolboxListTerminals", "GET /process/pty", "", http.StatusOK, a.listTerminals),
		httpapi.Raw("toolboxConnectNew", "GET /process/pty/create-connect", "", http.StatusSwitchingProtocols, a.connectNew).ReadsContent(),
		httpapi.Op("toolboxGetTerminal", "GET /process/pty/{terminal}", "", http.StatusOK, a.getTerminal),
		httpapi.Op("toolboxKillTerminal", "DELETE /process/pty/{terminal}", "", http.StatusOK, a.killTerminal),
		httpapi.Op("toolboxResizeTerminal", "POST /process/pty/{terminal}/resize", "", http.StatusOK, a.resizeTerminal),
		httpapi.Raw("toolboxConnect", "GET /process/pty/{terminal}/connect", "", http.StatusSwitchingProtocols, a.connectTerminal).ReadsContent(),
		httpapi.Op("toolboxMetrics", "GET /system/metrics", "", http.StatusOK, a.metrics),
		httpapi.Op("toolboxPorts", "GET /port", "", http.StatusOK, a.ports).ReadsContent(),
		httpapi.Op("toolboxPortInUse", "GET /port/{port}/in-use", "", http.StatusOK, a.portInUse).ReadsContent(),
		httpapi.Op("toolboxUpdateEnv", "POST /env", "", http.StatusOK, a.updateEnv),
		httpapi.Op("toolboxHome", "GET /user-home-dir", "", http.StatusOK, a.home),
		httpapi.Op("toolboxWorkDir", "GET /work-dir", "", http.StatusOK, a.workDir),
		httpapi.Op("toolboxProjectDir", "GET /project-dir", "", http.StatusOK, a.workDir),
		httpapi.Op("toolboxListFiles", "GET /files", "", http.StatusOK, a.listFiles).ReadsContent(),
		httpapi.Op("toolboxFileInfo", "GET /files/info", "", http.StatusOK, a.fileInfo),
		httpapi.Op("toolboxMakeFolder", "POST /files/folder", "", http.StatusCreated, a.makeFolder),
		httpapi.Op("toolboxDeleteFile", "DELETE /files", "", http.StatusNoContent, a.deleteFile),
		httpapi.Op("toolboxMoveFile", "POST /files/move", "", http.StatusOK, a.moveFile),
		httpapi.Op("toolboxFindFiles", "GET /files/find", "", http.StatusOK, a.findInFiles).ReadsContent(),
		httpapi.Op("toolboxSearchFiles", "GET /files/search", "", http.StatusOK, a.searchFiles).ReadsContent(),
		httpapi.Op("toolboxReplace", "POST /files/replace", "", http.StatusOK, a.replaceInFiles),
		httpapi.Op("toolboxPermissions", "POST /files/permissions", "", http.StatusOK, a.setPermissions),
		httpapi.Raw("toolboxUpload", "POST /files/bulk-upload", "", http.StatusOK, a.upload),
		httpapi.Raw("toolboxUploadOne", "POST "+uploadOnePath, "", http.StatusOK, a.uploadOne),
		httpapi.Raw("toolboxDownload", "POST /files/bulk-download", "", http.StatusOK, a.download).ReadsContent(),
		httpapi.Raw("toolboxDownloadOne", "GET "+downloadOnePath, "", http.StatusOK, a.downloadOne).ReadsContent(),
	})
}
