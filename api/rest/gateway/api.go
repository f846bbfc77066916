// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
)

// API serves the operations in the form of the MCP Gateway. It is safe for concurrent use.
type API struct {
	Sandboxes service.Sandboxes // required
	Images    service.Images    // required
	Server    service.Server    // required
	Keeper    service.Keeper    // nil: nobody administers images
	Projects  service.Projects  // nil: nobody keeps records of projects
	Usage     service.Usage     // nil: nobody adds up what is used
	Audit     service.Audit     // nil: there is no audit log
}

// Operations returns the rows of the coat's table that the API serves.
func (a *API) Operations() []httpapi.Operation {
	return []httpapi.Operation{
		httpapi.Op("listSandboxImages", "GET /sandbox-images", "List images in the form of the MCP Gateway.", http.StatusOK, a.listSandboxImages),
		httpapi.Op("listSandboxImageTemplates", "GET /sandbox-images/templates", "List the entries of the catalogue in the form of the MCP Gateway. POST /images/{name}/import builds one.", http.StatusOK, a.listSandboxImageTemplates),
		httpapi.Op("listSandboxImagePackages", "GET /sandbox-images/packages", "List the packages of all entries of the catalogue, by the tool that installs them.", http.StatusOK, a.listSandboxImagePackages),
		httpapi.Op("listUserQuotas", "GET /admin/sandboxes/quotas", "List the quotas of projects that have some, in the form of the MCP Gateway, whose users are projects here. For the server's own administrator's token alone.", http.StatusOK, a.listUserQuotas),
		httpapi.Op("getUserQuota", "GET /admin/sandboxes/quotas/{user_id}", "Get a project's quotas in the form of the MCP Gateway. For the server's own administrator's token alone.", http.StatusOK, a.getUserQuota),
		httpapi.Op("setUserQuota", "PUT /admin/sandboxes/quotas/{user_id}", "Change a project's quotas in the form of the MCP Gateway: the fields that are there; 0 takes one away. For the server's own administrator's token alone.", http.StatusOK, a.setUserQuota).
			Example(v1.SetUserQuota{MaxSandboxes: new(int64(5)), MaxMemoryMB: new(int64(2048))}),
		httpapi.Op("usageSummary", "GET /admin/sandboxes/usage/summary", "Sum what each project used, in the form of the MCP Gateway. For the server's own administrator's token alone.", http.StatusOK, a.usageSummary),
		httpapi.Op("sandboxImagePool", "GET /admin/sandbox-images/{id}/pool", "Get how many sandboxes of an image run before anybody asks, in the form of the MCP Gateway. For the server's own administrator's token alone.", http.StatusOK, a.imagePool),
		httpapi.Op("deleteSandboxImage", "DELETE /admin/sandbox-images/{id}", "Delete an image in the form of the MCP Gateway: as deleteImage does, with force the sandboxes and snapshots that use it, too. For the server's own administrator's token alone.", http.StatusOK, a.deleteSandboxImage),
		httpapi.Op("sandboxLogs", "GET /sandboxes/{id}/logs", "List what ran and was done in a sandbox, newest first, from the audit log in the form of the MCP Gateway.", http.StatusOK, a.sandboxLogs),
		httpapi.Raw("exportSandboxLogs", "GET /sandboxes/{id}/logs/export", "Get the audit log of a sandbox as a file.", http.StatusOK, a.exportSandboxLogs).
			Media("", v1.AuditType).Also(http.StatusOK, "text/csv", nil, ""),
		httpapi.Op("observabilityLogs", "GET /observability/logs", "List what ran and was done in the project's sandboxes, newest first, in the form of the MCP Gateway.", http.StatusOK, a.observabilityLogs),
		httpapi.Raw("exportObservabilityLogs", "GET /observability/logs/export", "Get the audit log as a file, by the filters of the MCP Gateway.", http.StatusOK, a.exportObservabilityLogs).
			Media("", v1.AuditType).Also(http.StatusOK, "text/csv", nil, ""),
	}
}
