// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package orkestr

import (
	"net/http"
	"strings"
	"time"

	"sandpit.dev/api/filelink"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/service"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
)

// Base is where the SDK finds the API: it is told its address, and adds its paths.
const Base = "/orkestr"

// Previews makes addresses of what ports serve.
type Previews interface {
	// HostToken returns the token of a link that is on record, and LinkAddress the address of a preview by it; "" where the
	// sender of r reaches none.
	HostToken(id string) string
	LinkAddress(r *http.Request, token string, port int) string
	// Addresses returns the addresses of a port that needs a token: the one to show, and the one by path, which are the same
	// where the sender of r reaches no name of a host.
	Addresses(r *http.Request, id string, port int) (address, path string)
	// SandboxToken returns the token that opens every port of a sandbox, by its key.
	SandboxToken(project, sandbox, key string) string
}

// FileLinks makes addresses of single files.
type FileLinks interface {
	Address(r *http.Request, g filelink.Grant) string
}

// Options is what the coat is made of. Zero fields take the value named behind them.
type Options struct {
	Services service.Services // required
	Guard    *guard.Guard     // required
	Previews Previews         // required
	Files    FileLinks        // required
	Region   string           // the name of the one region; required
	// Heartbeat, Stall and Memory are as in [httpapi.Options].
	Heartbeat, Stall time.Duration
	Memory           *budget.Budget
}

// API is the handler of all below [Base]. It is safe for concurrent use.
type API struct {
	service.Services
	previews Previews
	links    FileLinks
	region   string
	// The nouns beside sandboxes have their names where sandboxes have their ids, which no router tells apart.
	sandboxes, nouns *httpapi.Handler
}

// New returns the coat. It starts nothing.
func New(o Options) (*API, error) {
	if !o.Services.Complete() || o.Guard == nil || o.Previews == nil || o.Files == nil || o.Region == "" {
		return nil, fault.New(fault.Internal, "orkestr.New needs all services, a guard, previews, links to files and the name of its region")
	}
	a := &API{Services: o.Services, previews: o.Previews, links: o.Files, region: o.Region}
	h := httpapi.Options{
		Guard: o.Guard, Via: "orkestr", Bases: []string{Base}, Lenient: true, Error: answerError, StreamError: lastFrame, Memory: o.Memory, Heartbeat: o.Heartbeat, Stall: o.Stall,
		Hint: "docs/orkestr.md lists what this server has of Orkestr's API",
	}
	var err error
	if a.sandboxes, err = httpapi.New(h, a.operations()); err != nil {
		return nil, err
	}
	a.nouns, err = httpapi.New(h, a.nounOperations())
	return a, err
}

// ServeHTTP answers requests below [Base].
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	noun, _, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), Base+root+"/"), "/")
	switch noun {
	case "snapshots", "volumes", "webhooks":
		a.nouns.ServeHTTP(w, r)
	default:
		a.sandboxes.ServeHTTP(w, r)
	}
}

// Close ends the waiting for commands, which go on. It may be called twice.
func (a *API) Close() {
	a.sandboxes.Close()
	a.nouns.Close()
}

const root = "/v1/sandboxes"

func (a *API) operations() []httpapi.Operation {
	const one = root + "/{id}"
	return []httpapi.Operation{
		httpapi.Op("createSandbox", "POST "+root, "", http.StatusCreated, a.createSandbox),
		httpapi.Op("listSandboxes", "GET "+root, "", http.StatusOK, a.listSandboxes),
		httpapi.Op("limits", "GET "+root+"/limits", "", http.StatusOK, a.limits),
		httpapi.Op("getSandbox", "GET "+one, "", http.StatusOK, a.getSandbox),
		httpapi.Op("deleteSandbox", "DELETE "+one, "", http.StatusNoContent, a.deleteSandbox),
		httpapi.Op("pauseSandbox", "POST "+one+"/pause", "", http.StatusOK, a.pauseSandbox),
		httpapi.Op("resumeSandbox", "POST "+one+"/resume", "", http.StatusOK, a.resumeSandbox),
		httpapi.Op("setTimeout", "POST "+one+"/timeout", "", http.StatusOK, a.setTimeout),
		httpapi.Op("metrics", "GET "+one+"/metrics", "", http.StatusOK, a.metrics),
		httpapi.Op("host", "GET "+one+"/host", "", http.StatusOK, a.host),

		httpapi.Raw("exec", "POST "+one+"/exec", "", http.StatusOK, a.exec).MaxBody(maxCommand),
		httpapi.Op("startCommand", "POST "+one+"/commands", "", http.StatusCreated, a.startCommand).MaxBody(maxCommand),
		httpapi.Op("listCommands", "GET "+one+"/commands", "", http.StatusOK, a.listCommands).ReadsContent(),
		httpapi.Op("getCommand", "GET "+one+"/commands/{command}", "", http.StatusOK, a.getCommand).ReadsContent(),
		httpapi.Op("killCommand", "DELETE "+one+"/commands/{command}", "", http.StatusNoContent, a.killCommand),
		httpapi.Raw("commandLogs", "GET "+one+"/commands/{command}/logs", "", http.StatusOK, a.commandLogs).ReadsContent(),

		httpapi.Raw("runCode", "POST "+one+"/code", "", http.StatusOK, a.runCode).MaxBody(maxCommand),
		httpapi.Op("createContext", "POST "+one+"/code/contexts", "", http.StatusCreated, a.createContext),
		httpapi.Op("listContexts", "GET "+one+"/code/contexts", "", http.StatusOK, a.listContexts),
		httpapi.Op("restartContext", "POST "+one+"/code/contexts/{context}/restart", "", http.StatusOK, a.restartContext),
		httpapi.Op("deleteContext", "DELETE "+one+"/code/contexts/{context}", "", http.StatusNoContent, a.deleteContext),

		httpapi.Op("writeFile", "POST "+one+"/files", "", http.StatusOK, a.writeFile).MaxBody(maxFileBody),
		httpapi.Op("writeFiles", "POST "+one+"/files/batch", "", http.StatusOK, a.writeFiles).MaxBody(maxBatchBody),
		httpapi.Op("readFile", "GET "+one+"/files", "", http.StatusOK, a.readFile).ReadsContent(),
		httpapi.Op("deleteFile", "DELETE "+one+"/files", "", http.StatusNoContent, a.deleteFile),
		httpapi.Op("makeDir", "POST "+one+"/files/mkdir", "", http.StatusNoContent, a.makeDir),
		httpapi.Op("moveFile", "POST "+one+"/files/move", "", http.StatusNoContent, a.moveFile),
		httpapi.Op("statFile", "GET "+one+"/files/stat", "", http.StatusOK, a.statFile).ReadsContent(),
		httpapi.Op("presignDownload", "POST "+one+"/files/presign-download", "", http.StatusOK, a.presignDownload),
		httpapi.Op("presignUpload", "POST "+one+"/files/presign-upload", "", http.StatusOK, a.presignUpload),

		httpapi.Op("createSnapshot", "POST "+one+"/snapshots", "", http.StatusCreated, a.createSnapshot),
	}
}

func (a *API) nounOperations() []httpapi.Operation {
	return []httpapi.Operation{
		httpapi.Op("listSnapshots", "GET "+root+"/snapshots", "", http.StatusOK, a.listSnapshots),
		httpapi.Op("getSnapshot", "GET "+root+"/snapshots/{snapshot}", "", http.StatusOK, a.getSnapshot),
		httpapi.Op("deleteSnapshot", "DELETE "+root+"/snapshots/{snapshot}", "", http.StatusNoContent, a.deleteSnapshot),

		httpapi.Op("createVolume", "POST "+root+"/volumes", "", http.StatusCreated, a.createVolume),
		httpapi.Op("listVolumes", "GET "+root+"/volumes", "", http.StatusOK, a.listVolumes),
		httpapi.Op("updateVolume", "PATCH "+root+"/volumes/{volume}", "", http.StatusOK, a.updateVolume),
		httpapi.Op("moveVolume", "POST "+root+"/volumes/{volume}/move", "", http.StatusOK, a.moveVolume),
		httpapi.Op("deleteVolume", "DELETE "+root+"/volumes/{volume}", "", http.StatusNoContent, a.deleteVolume),

		httpapi.Op("createWebhook", "POST "+root+"/webhooks", "", http.StatusCreated, a.createWebhook),
		httpapi.Op("listWebhooks", "GET "+root+"/webhooks", "", http.StatusOK, a.listWebhooks),
		httpapi.Op("getWebhook", "GET "+root+"/webhooks/{webhook}", "", http.StatusOK, a.getWebhook),
		httpapi.Op("webhookSecret", "GET "+root+"/webhooks/{webhook}/secret", "", http.StatusOK, a.webhookSecret),
		httpapi.Op("enableWebhook", "POST "+root+"/webhooks/{webhook}/enable", "", http.StatusOK, a.enableWebhook),
		httpapi.Op("deleteWebhook", "DELETE "+root+"/webhooks/{webhook}", "", http.StatusNoContent, a.deleteWebhook),
	}
}
