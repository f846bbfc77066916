// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net/http"
	"reflect"
	"time"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
)

// API serves the operations of administrators. It is safe for concurrent use.
type API struct {
	Server   service.Server   // required
	Keeper   service.Keeper   // nil: nobody administers images
	Projects service.Projects // nil: nobody keeps records of projects
	Settings service.Settings // nil: none can be changed
	Fleet    service.Fleet    // nil: nobody sees the sandboxes of all projects
	Usage    service.Usage    // nil: nobody adds up what is used
	Stats    service.Stats    // nil: nobody reads what is in use
	Doctor   service.Doctor   // nil: nobody checks the host
	Overview service.Overview // nil: nobody counts what happens
	Audit    service.Audit    // nil: there is no audit log
	Backups  Backups          // nil: no backups are made
}

// Operations returns the rows of the coat's table that the API serves.
func (a *API) Operations() []httpapi.Operation {
	return []httpapi.Operation{
		httpapi.Raw("createBackup", "POST /backups", "Get a backup of the whole server, as it is made: records, disks, artifacts and keys. Needs the scope server:admin. One that breaks off ends without its last chunk.", http.StatusOK, a.createBackup).
			Media("", v1.BackupType).
			Extend(idempotency.Keyless("another backup is of another moment")),
		httpapi.Op("getOverview", "GET /overview", "What the project is at: sandboxes by state, what they use together, and what happened in the last hour by the minute: creates and commands with how long callers waited, failures by cause, refused connections. For the server's own administrator's token the host, the stores and open files, too. It reads figures that are kept, and asks no sandbox.", http.StatusOK, a.getOverview),
		httpapi.Op("getDoctor", "GET /doctor", "What the server finds of itself and of its host, each thing with a status, the cause and a remedy, as sandpit doctor does on the host. It repairs nothing. Who asks while the checks go on gets the same report; one that has no answer within seconds is told of as that. Needs the scope server:admin.", http.StatusOK, a.getDoctor),
		httpapi.Op("listAllSandboxes", "GET /admin/sandboxes", "List sandboxes of all projects, newest first. For the server's own administrator's token alone.", http.StatusOK, a.listAllSandboxes),
		httpapi.Op("bulkStopSandboxes", "POST /admin/sandboxes/bulk-stop", "Stop sandboxes of all projects: by ids, or by what a filter says. One that is not up is skipped; a failure does not spare the others. For the server's own administrator's token alone.", http.StatusOK, a.bulkStop).
			Example(v1.BulkSandboxes{Project: new("team-a"), Status: []string{"running"}, DryRun: true}).
			Extend(idempotency.Keyless("twice is as once")),
		httpapi.Op("bulkDestroySandboxes", "POST /admin/sandboxes/bulk-destroy", "Delete sandboxes of all projects, with all that is in them: by ids, or by what a filter says. For the server's own administrator's token alone.", http.StatusOK, a.bulkDestroy).
			Example(v1.BulkSandboxes{SandboxIDs: []string{"f3k9q2m7x1b8c4d6"}}).
			Extend(idempotency.Keyless("twice is as once")),
		httpapi.Raw("getStats", "GET /sandboxes/{id}/stats", "What a sandbox uses now, and in the last hour by the minute: processors, memory, disk, processes. Asking does not count as a use of it. With follow=true as server-sent events stats (SandboxStats), and error (Problem) at last.", http.StatusOK, a.getStats).
			Out(reflect.TypeFor[v1.SandboxStats]()).
			Also(http.StatusOK, "text/event-stream", nil, "").Events(map[string]reflect.Type{v1.StatsEvent: reflect.TypeFor[v1.SandboxStats]()}),
		httpapi.Raw("listStats", "GET /stats", "What each of the project's sandboxes uses now that is up, and all together; for the server's own administrator's token the host, too. With follow=true as server-sent events stats (StatsList).", http.StatusOK, a.listStats).
			Out(reflect.TypeFor[v1.StatsList]()).
			Also(http.StatusOK, "text/event-stream", nil, "").Events(map[string]reflect.Type{v1.StatsEvent: reflect.TypeFor[v1.StatsList]()}),
		httpapi.Op("getUsage", "GET /usage", "What was used, deleted sandboxes included: commands, time running, processors, memory and disk that were promised, bytes; by project, token, day or hour.", http.StatusOK, a.getUsage),
		httpapi.Op("listAudit", "GET /audit", "List the audit log, newest first, with rows of sandboxes that are deleted. Needs the scope admin; that of other projects and of the server needs server:admin.", http.StatusOK, a.listAudit),
		httpapi.Raw("exportAudit", "GET /audit/export", "Get the audit log as a file, oldest first: lines of JSON, signed, which sandpit audit verify reads anywhere; or CSV.", http.StatusOK, a.exportAudit).
			Media("", v1.AuditType).Also(http.StatusOK, "text/csv", nil, ""),
		httpapi.Op("verifyAudit", "POST /audit/verify", "Check that no row of the audit log was changed, removed, added or moved. Needs the scope server:admin.", http.StatusOK, a.verifyAudit).
			Extend(idempotency.Keyless("it changes nothing")),
		httpapi.Op("pruneAudit", "POST /audit/prune", "Delete the rows of the audit log before a time. A signed checkpoint says where the rest begins. Needs the scope server:admin.", http.StatusOK, a.pruneAudit).
			Example(v1.PruneAudit{Before: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), DryRun: true}).
			Extend(idempotency.Keyless("twice is as once")),
		httpapi.Op("listSettings", "GET /settings", "List what can be set without a restart of the server: each setting's value, where that comes from, and what it holds for. For the server's own administrator's token alone.", http.StatusOK, a.listSettings),
		httpapi.Op("updateSettings", "PATCH /settings", "Change settings by name, all that the body has or none; they are in force when this answers, and after a restart. For the server's own administrator's token alone.", http.StatusOK, a.updateSettings).
			Example(v1.UpdateSettings{IdleTimeoutSeconds: new(int64(3600)), LogRequests: new(true), Unset: []string{"default_image"}}),
		httpapi.Op("getConfiguration", "GET /settings/configuration", "Get the configuration that the server started with: each key's value, without what is secret, where that comes from, and which setting begins with it; what has none needs a restart to change. For the server's own administrator's token alone.", http.StatusOK, a.getConfiguration),
		httpapi.Op("getSandboxSettings", "GET /settings/sandbox", "Get the settings in the form of the MCP Gateway. For the server's own administrator's token alone.", http.StatusOK, a.getSandboxSettings),
		httpapi.Op("updateSandboxSettings", "PATCH /settings/sandbox", "Change the settings in the form of the MCP Gateway. For the server's own administrator's token alone.", http.StatusOK, a.updateSandboxSettings).
			Example(v1.UpdateSandboxSettings{IdleTimeoutSeconds: new(int64(1800))}),
		httpapi.Op("listProjects", "GET /projects", "List projects with their quotas and what they use: the caller's own, or with the scope server:admin all.", http.StatusOK, a.listProjects),
		httpapi.Op("createProject", "POST /projects", "Make a project. Making a token for one that there is not makes it, too. Needs the scope server:admin.", http.StatusCreated, a.createProject).
			Example(v1.CreateProject{Name: "web", Quotas: &v1.Amounts{Sandboxes: new(int64(100)), MemoryMB: new(int64(65536))}}).
			Extend(idempotency.Keyless("the second finds the name taken")),
		httpapi.Op("getProject", "GET /projects/{name}", "Get a project: the caller's own, or with the scope server:admin any.", http.StatusOK, a.getProject),
		httpapi.Op("updateProject", "PATCH /projects/{name}", "Change a project's quotas. Needs the scope server:admin.", http.StatusOK, a.updateProject).
			Example(v1.UpdateProject{Quotas: &v1.Amounts{Running: new(int64(20)), Volumes: new(int64(0))}}),
		httpapi.Op("deleteProject", "DELETE /projects/{name}", "Delete a project to which nothing belongs. Needs the scope server:admin.", http.StatusNoContent, a.deleteProject),
	}
}
