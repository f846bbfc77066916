// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"net/http"
	"slices"
	"time"

	"sandpit.dev/api/daytona/lacking"
	"sandpit.dev/api/daytona/objects"
	"sandpit.dev/api/daytona/problem"
	"sandpit.dev/api/daytona/toolbox"
	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/filelink"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/service"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
	"sandpit.dev/sandbox"
)

// Base is where clients find the API: they are told its address, and add their paths.
const Base = "/daytona"

// toolboxPath is where the toolbox is below Base.
const toolboxPath = "/toolbox"

// Options configure [New]. Zero fields take the value named behind them.
type Options struct {
	Services service.Services // required, with Languages
	Guard    *guard.Guard     // required
	Previews Previews         // required
	Files    *filelink.Links  // required
	Contexts Contexts         // required
	Keys     *objects.Keys    // by which clients send what Contexts keeps; required
	Target   string           // the name of the one region: the server's; required
	Version  string           // of the server
	// Heartbeat, Stall and Memory are as in [httpapi.Options].
	Heartbeat, Stall time.Duration
	Memory           *budget.Budget
}

// API is the handler of all below [Base]. It is safe for concurrent use.
type API struct {
	service.Services
	previews Previews
	target   string
	version  string
	files    *filelink.Links
	contexts Contexts
	keys     *objects.Keys
	handler  *httpapi.Handler
	signed   http.Handler // files by signed addresses
	events   http.Handler
	gone     gone
}

// New returns the handler. It starts nothing.
func New(o Options) (*API, error) {
	if !o.Services.Complete() || o.Services.Languages == nil || o.Services.Events == nil || o.Guard == nil || o.Previews == nil || o.Files == nil || o.Contexts == nil || o.Keys == nil || o.Target == "" {
		return nil, fault.New(fault.Internal, "daytona.New needs all services, a guard, previews, links to files, contexts, their keys and the name of its region")
	}
	a := &API{Services: o.Services, previews: o.Previews, files: o.Files, target: o.Target, version: o.Version, contexts: o.Contexts, keys: o.Keys}
	ops := slices.Concat(a.operations(), a.clockOperations(), a.snapshotOperations(), lacking.Operations("", lackingOperations()))
	inside := toolbox.New(toolbox.Options{Services: o.Services, Guard: o.Guard, Files: o.Files})
	under := []string{toolboxPath + "/{id}", toolboxPath + "/{id}/toolbox"} // the second is older clients'
	for _, op := range inside.Operations() {
		for _, under := range under {
			mounted := op
			mounted.Path = under + op.Path
			ops = append(ops, mounted)
		}
	}
	var err error
	a.handler, err = httpapi.New(httpapi.Options{
		Guard: o.Guard, Via: "daytona", Bases: []string{Base}, Lenient: true, Error: problem.Answer, Memory: o.Memory, Heartbeat: o.Heartbeat, Stall: o.Stall,
		Hint: "docs/daytona.md lists what this server has of Daytona's API",
	}, ops)
	if err != nil {
		return nil, err
	}
	a.signed = o.Guard.OpenLink(guard.Door{Error: problem.Answer}, a.handler.Func(inside.Signed))
	a.events = a.socket(o.Guard)
	return a, nil
}

// ServeHTTP answers requests below [Base].
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == socketPath:
		a.events.ServeHTTP(w, r)
	case toolbox.IsSigned(r):
		a.signed.ServeHTTP(w, r)
	default:
		a.handler.ServeHTTP(w, r)
	}
}

// Close closes sockets and ends requests that wait for commands; the commands go on. It may be called twice.
func (a *API) Close() { a.handler.Close() }

// sandboxOp returns an operation that answers with the sandbox, as it is after serve.
func sandboxOp[In any](a *API, id, pattern string, serve func(context.Context, *httpapi.Call, *In) (*sandbox.Sandbox, error)) httpapi.Operation {
	return httpapi.Bounded(id, pattern, "", http.StatusOK, func(ctx context.Context, c *httpapi.Call, in *In) (wire.Sandbox, error) {
		s, err := serve(ctx, c, in)
		if err != nil {
			return wire.Sandbox{}, inTheirNames(err)
		}
		return a.full(c, s), nil
	})
}

// operations returns those of the control plane. Statuses are those of the clients' published description.
func (a *API) operations() []httpapi.Operation {
	return []httpapi.Operation{
		httpapi.Bounded("createSandbox", "POST /sandbox", "", http.StatusOK, a.createSandbox),
		httpapi.Op("listSandboxes", "GET /sandbox", "", http.StatusOK, a.listSandboxes),
		httpapi.Op("listSandboxesPaginated", "GET /sandbox/paginated", "", http.StatusOK, a.numberedSandboxes),
		sandboxOp(a, "getSandbox", "GET /sandbox/{id}", a.getSandbox),
		httpapi.Op("getBuildLogsUrl", "GET /sandbox/{id}/build-logs-url", "", http.StatusOK, a.sandboxBuildLogsURL),
		httpapi.Raw("getBuildLogs", "GET /sandbox/{id}/build-logs", "", http.StatusOK, a.sandboxBuildLogs).ReadsContent(),
		sandboxOp(a, "deleteSandbox", "DELETE /sandbox/{id}", a.deleteSandbox),
		sandboxOp(a, "startSandbox", "POST /sandbox/{id}/start", a.startSandbox),
		sandboxOp(a, "stopSandbox", "POST /sandbox/{id}/stop", a.stopSandbox),
		sandboxOp(a, "pauseSandbox", "POST /sandbox/{id}/pause", a.pauseSandbox),
		sandboxOp(a, "archiveSandbox", "POST /sandbox/{id}/archive", a.archiveSandbox),
		sandboxOp(a, "recoverSandbox", "POST /sandbox/{id}/recover", a.startSandbox),
		sandboxOp(a, "resizeSandbox", "POST /sandbox/{id}/resize", a.resizeSandbox),
		sandboxOp(a, "forkSandbox", "POST /sandbox/{id}/fork", a.forkSandbox),
		httpapi.Op("replaceLabels", "PUT /sandbox/{id}/labels", "", http.StatusOK, a.replaceLabels),
		sandboxOp(a, "setPublic", "POST /sandbox/{id}/public/{value}", a.setPublic),
		httpapi.Op("updateLastActivity", "POST /sandbox/{id}/last-activity", "", http.StatusCreated, a.touch),
		sandboxOp(a, "updateNetworkSettings", "POST /sandbox/{id}/network-settings", a.setNetwork),
		httpapi.Op("getToolboxProxyUrl", "GET /sandbox/{id}/toolbox-proxy-url", "", http.StatusOK, a.toolboxAddress),
		httpapi.Op("getSandboxSigningKey", "GET /sandbox/{id}/signing-key", "", http.StatusOK, a.signingKey).ReadsContent(),
		httpapi.Op("rotateSandboxSigningKey", "POST /sandbox/{id}/signing-key/rotate", "", http.StatusOK, a.rotateSigningKey),
		httpapi.Op("getPortPreviewUrl", "GET /sandbox/{id}/ports/{port}/preview-url", "", http.StatusOK, a.previewURL),
		httpapi.Op("getSignedPortPreviewUrl", "GET /sandbox/{id}/ports/{port}/signed-preview-url", "", http.StatusOK, a.signedURL),
		httpapi.Op("expireSignedPortPreviewUrl", "POST /sandbox/{id}/ports/{port}/signed-preview-url/{token}/expire", "", http.StatusOK, a.expireSigned),
		httpapi.Bounded("createSecret", "POST /secret", "", http.StatusCreated, a.createSecret),
		httpapi.Op("listSecrets", "GET /secret", "", http.StatusOK, a.listSecrets),
		httpapi.Op("listSecretsPaginated", "GET /secret/paginated", "", http.StatusOK, a.pageOfSecrets),
		httpapi.Op("getSecret", "GET /secret/{secret}", "", http.StatusOK, a.getSecret),
		httpapi.Bounded("updateSecret", "PATCH /secret/{secret}", "", http.StatusOK, a.updateSecret),
		httpapi.Bounded("deleteSecret", "DELETE /secret/{secret}", "", http.StatusNoContent, a.deleteSecret),
		sandboxOp(a, "updateSandboxSecrets", "PUT /sandbox/{id}/secrets", a.updateSandboxSecrets),
		httpapi.Op("listWarmPools", "GET /warm-pools", "", http.StatusOK, a.listPools),
		httpapi.Bounded("createWarmPool", "POST /warm-pools", "", http.StatusCreated, a.createPool),
		httpapi.Bounded("updateWarmPool", "PATCH /warm-pools/{pool}", "", http.StatusOK, a.updatePool),
		httpapi.Bounded("deleteWarmPool", "DELETE /warm-pools/{pool}", "", http.StatusNoContent, a.deletePool),
		httpapi.Op("listVolumes", "GET /volumes", "", http.StatusOK, a.listVolumes),
		httpapi.Bounded("createVolume", "POST /volumes", "", http.StatusOK, a.createVolume),
		httpapi.Op("getVolume", "GET /volumes/{id}", "", http.StatusOK, a.getVolume),
		httpapi.Op("getVolumeByName", "GET /volumes/by-name/{id}", "", http.StatusOK, a.volumeByName),
		httpapi.Bounded("deleteVolume", "DELETE /volumes/{id}", "", http.StatusOK, a.deleteVolume),
		httpapi.Op("getSandboxMetrics", "GET /sandbox/{id}/telemetry/metrics", "", http.StatusOK, a.sandboxMetrics),
		httpapi.Op("getConfig", "GET /config", "", http.StatusOK, a.config),
	}
}
