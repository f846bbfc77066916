// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"slices"
	"time"

	"sandpit.dev/api/filelink"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/admin"
	"sandpit.dev/api/rest/clients"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/sessions"
	"sandpit.dev/api/rest/tokens"
	"sandpit.dev/api/service"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
	"sandpit.dev/store/keyed"
)

// Options is what the coat is made of.
type Options struct {
	Services service.Services // required
	Tokens   tokens.Tokens    // required
	Guard    *guard.Guard     // required
	// Sessions signs people in who use a browser; nil: nobody signs in.
	Sessions sessions.Sessions
	// Clients is what programs that speak MCP are told, and which have called.
	Clients clients.API
	// Keys are the idempotency keys of requests, whose store Engine and Tokens work on; nil:
	// no operation takes one.
	Keys *keyed.Keys
	// Backups makes backups of the server; nil: there are none.
	Backups admin.Backups
	// Previews makes links to ports; nil: there are none.
	Previews Previews
	// Files makes links to artifacts; nil: there are none.
	Files *filelink.Links
	// MaxFile is the most bytes of one raw upload; zero: 5 GiB.
	MaxFile int64
	// Heartbeat is how often a quiet event stream, or a WebSocket, says that it is
	// alive; zero: 15 s.
	Heartbeat time.Duration
	// Stall is how long a client may take nothing of an answer before its
	// connection is cut; zero: 30 s. The guard has the same for bodies.
	Stall time.Duration
	// Memory bounds what large answers and bodies hold; nil: a budget of its own.
	Memory  *budget.Budget
	Version string // in the OpenAPI document
	// PrivateDocument has the OpenAPI document need a token, as all else does.
	PrivateDocument bool
}

// Bounds of bodies, in bytes.
const (
	maxJSON    = 1 << 20  // of most requests
	maxBigJSON = 12 << 20 // of those that carry a file or a standard input
)

// API is the handler of /v1 and /api/v1. It is safe for concurrent use.
type API struct {
	service.Services
	tokens   tokens.Tokens
	sessions *sessions.API
	clients  clients.API
	previews Previews
	backups  admin.Backups
	links    *filelink.Links
	maxFile  int64
	document []byte
	private  bool // the document is
	handler  *httpapi.Handler
}

// New returns the coat. It starts nothing.
func New(o Options) (*API, error) {
	if !o.Services.Complete() || o.Tokens == nil || o.Guard == nil {
		return nil, fault.New(fault.Internal, "rest.New needs all services, tokens and a guard")
	}
	a := &API{
		Services: o.Services, tokens: o.Tokens, sessions: &sessions.API{Sessions: o.Sessions, Guard: o.Guard}, clients: o.Clients, previews: o.Previews, backups: o.Backups, links: o.Files, private: o.PrivateDocument, maxFile: o.MaxFile,
	}
	if a.maxFile <= 0 {
		a.maxFile = guard.DefaultMaxBody
	}
	ops := a.operations()
	for _, name := range contentOperations() {
		i := slices.IndexFunc(ops, func(o httpapi.Operation) bool { return o.ID == name })
		if i < 0 {
			return nil, fault.New(fault.Internal, "there is no operation %s that reads content", name)
		}
		ops[i] = ops[i].ReadsContent()
		if slices.Contains(watchedOperations(), name) {
			ops[i] = ops[i].Watched()
		}
	}
	doc, err := document(o.Version).Make(ops)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the OpenAPI document cannot be made")
	}
	a.document = doc
	a.handler, err = httpapi.New(httpapi.Options{
		Guard: o.Guard, Via: "rest", Credentials: []guard.Credential{guard.Bearer(), guard.InSession("/v1/")}, Bases: bases(), MaxBody: maxJSON, Serve: idempotency.Serve(o.Keys),
		Hint:   "see /v1/openapi.json for what there is; MCP is at /mcp, and /connect says how to set up a client",
		Memory: o.Memory, Heartbeat: o.Heartbeat, Stall: o.Stall,
	}, ops)
	return a, err
}

// bases are where the same routes are found.
func bases() []string { return []string{"/v1", "/api/v1"} }

// ServeHTTP answers requests for /v1/… and /api/v1/…; all else is not found.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// Close ends the terminals and the waiting for commands, since a server's
// shutdown does not wait for the first and would wait long for the others. The
// commands go on. It may be called twice.
func (a *API) Close() { a.handler.Close() }

// contentOperations are the GETs whose answers have what is in sandboxes, or what ran in them. The audit log tells of
// each; of those of files, terminals and ports an event does.
func contentOperations() []string {
	return []string{
		"exportSnapshot", "diffSandbox", "listActivity", "skillPackage", "followProcess", "waitProcess", "processLogs", "openTerminal", "attachTerminal",
		"getRun", "runEvents", "shellCommand", "networkLog", "connectPort", "readOrListFiles", "readFile", "packFiles", "listSnapshotFilesOf", "listSnapshotFiles", "readSnapshotFileOf", "readSnapshotFile", "diffText", "watchFiles", "imageLog", "templateLog", "saveImage",
		"listAudit", "exportAudit", "sandboxLogs", "exportSandboxLogs", "observabilityLogs", "exportObservabilityLogs",
	}
}

// watchedOperations are those of them that a page asks for again and again while somebody looks at it.
func watchedOperations() []string { return []string{"listActivity", "networkLog", "listAudit"} }

// LinkedFiles serves files to whoever holds a link to them. It needs no token of
// the API; the link is one. What is served is read with the rights of a caller
// that may read the link's project, and as the user sandbox.
func (a *API) LinkedFiles(links *filelink.Links) http.Handler {
	return a.handler.Func(func(c *httpapi.Call) error { return a.filesAPI().Linked(c, links) })
}
