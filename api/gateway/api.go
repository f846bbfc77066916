// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"time"

	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/service"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
	"sandpit.dev/skill"
)

// Base is where the SDK finds the API: it is told its address, and adds its paths.
const Base = "/gateway"

// Options is what the coat is made of. Zero fields take the value named behind them.
type Options struct {
	Services service.Services // required
	Guard    *guard.Guard     // required
	// Heartbeat, Stall and Memory are as in [httpapi.Options].
	Heartbeat, Stall time.Duration
	Memory           *budget.Budget
}

// API is the handler of all below [Base]. It is safe for concurrent use.
type API struct {
	service.Services
	handler *httpapi.Handler
}

// New returns the coat. It starts nothing.
func New(o Options) (*API, error) {
	if !o.Services.Complete() || o.Guard == nil {
		return nil, fault.New(fault.Internal, "gateway.New needs all services and a guard")
	}
	a := &API{Services: o.Services}
	var err error
	a.handler, err = httpapi.New(httpapi.Options{
		Guard: o.Guard, Via: "gateway", Bases: []string{Base}, Lenient: true, Error: answerError, Memory: o.Memory, Heartbeat: o.Heartbeat, Stall: o.Stall,
		Hint: "docs/gateway.md lists what this server has of the MCP Gateway's API",
	}, a.operations())
	return a, err
}

// ServeHTTP answers requests below [Base].
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// Close ends the waiting for commands, which go on. It may be called twice.
func (a *API) Close() { a.handler.Close() }

func (a *API) operations() []httpapi.Operation {
	return []httpapi.Operation{
		httpapi.Op("health", "GET /health", "", http.StatusOK, a.health).Open(true),

		httpapi.Op("listSandboxes", "GET /api/v1/sandboxes", "", http.StatusOK, a.listSandboxes),
		httpapi.Op("createSandbox", "POST /api/v1/sandboxes", "", http.StatusCreated, a.createSandbox),
		httpapi.Op("getSandbox", "GET /api/v1/sandboxes/{id}", "", http.StatusOK, a.getSandbox),
		httpapi.Op("updateSandbox", "PATCH /api/v1/sandboxes/{id}", "", http.StatusOK, a.updateSandbox),
		httpapi.Op("deleteSandbox", "DELETE /api/v1/sandboxes/{id}", "", http.StatusNoContent, a.deleteSandbox),
		httpapi.Op("stopSandbox", "POST /api/v1/sandboxes/{id}/stop", "", http.StatusOK, a.stopSandbox),
		httpapi.Op("resumeSandbox", "POST /api/v1/sandboxes/{id}/resume", "", http.StatusOK, a.resumeSandbox),
		httpapi.Op("exec", "POST /api/v1/sandboxes/{id}/exec", "", http.StatusOK, a.exec),
		httpapi.Op("listActivity", "GET /api/v1/sandboxes/{id}/activity", "", http.StatusOK, a.listActivity).ReadsContent(),
		httpapi.Op("listLogs", "GET /api/v1/sandboxes/{id}/logs", "", http.StatusOK, a.listLogs),
		httpapi.Raw("exportLogs", "GET /api/v1/sandboxes/{id}/logs/export", "", http.StatusOK, a.exportLogs),
		httpapi.Op("listFiles", "GET /api/v1/sandboxes/{id}/files", "", http.StatusOK, a.listFiles).ReadsContent(),
		httpapi.Raw("readFile", "GET /api/v1/sandboxes/{id}/files/{path...}", "", http.StatusOK, a.readFile).ReadsContent(),
		httpapi.Op("writeFile", "PUT /api/v1/sandboxes/{id}/files/{path...}", "", http.StatusNoContent, a.writeFile),
		httpapi.Op("installSkills", "POST /api/v1/sandboxes/{id}/skills", "", http.StatusOK, a.installSkills),

		httpapi.Op("listImages", "GET /api/v1/sandbox-images", "", http.StatusOK, a.listImages),
		httpapi.Op("listImageTemplates", "GET /api/v1/sandbox-images/templates", "", http.StatusOK, a.listImageTemplates),
		httpapi.Op("listImagePackages", "GET /api/v1/sandbox-images/packages", "", http.StatusOK, a.listImagePackages),

		httpapi.Op("listSkills", "GET /api/v1/skills", "", http.StatusOK, a.listSkills),
		httpapi.Op("createSkill", "POST /api/v1/skills", "", http.StatusCreated, a.createSkill).MaxBody(skill.MaxBytes),
		httpapi.Op("uploadSkill", "POST /api/v1/skills/upload", "", http.StatusCreated, a.uploadSkill),
		httpapi.Op("importSkill", "POST /api/v1/skills/import", "", http.StatusCreated, a.importSkill),
		httpapi.Op("listSkillTemplates", "GET /api/v1/skills/templates", "", http.StatusOK, a.listSkillTemplates),
		httpapi.Op("getSkillOfCatalog", "GET /api/v1/skills/catalog/{source}/{name}", "", http.StatusOK, a.skillOfCatalog),
		httpapi.Op("getSkill", "GET /api/v1/skills/{skill}", "", http.StatusOK, a.getSkill),
		httpapi.Op("updateSkill", "PATCH /api/v1/skills/{skill}", "", http.StatusOK, a.updateSkill).MaxBody(skill.MaxBytes),
		httpapi.Op("deleteSkill", "DELETE /api/v1/skills/{skill}", "", http.StatusNoContent, a.deleteSkill),
		httpapi.Raw("readOfSkill", "GET /api/v1/skills/{skill}/{part}", "", http.StatusOK, a.readOfSkill).ReadsContent(),
		httpapi.Op("replaceSkillPackage", "PATCH /api/v1/skills/{skill}/package", "", http.StatusOK, a.replaceSkillPackage),
	}
}
