// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/daytonaterms"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/service"
	"sandpit.dev/engine/templates"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/template"
)

// What clients call a snapshot is a template: the newest version of its name that is ready.

func (a *API) snapshotOperations() []httpapi.Operation {
	return []httpapi.Operation{
		sandboxOp(a, "createSandboxSnapshot", "POST /sandbox/{id}/snapshot", a.snapshotSandbox),
		httpapi.Op("listSnapshots", "GET /snapshots", "", http.StatusOK, a.listSnapshots),
		httpapi.Bounded("createSnapshot", "POST /snapshots", "", http.StatusOK, a.createSnapshot),
		httpapi.Op("getSnapshot", "GET /snapshots/{id}", "", http.StatusOK, a.getSnapshot),
		httpapi.Bounded("removeSnapshot", "DELETE /snapshots/{id}", "", http.StatusOK, a.deleteSnapshot),
		httpapi.Op("activateSnapshot", "POST /snapshots/{id}/activate", "", http.StatusOK, a.activateSnapshot),
		httpapi.Op("deactivateSnapshot", "POST /snapshots/{id}/deactivate", "", http.StatusNoContent, a.deactivateSnapshot),
		httpapi.Op("getSnapshotBuildLogsUrl", "GET /snapshots/{id}/build-logs-url", "", http.StatusOK, a.snapshotBuildLogsURL),
		httpapi.Raw("getSnapshotBuildLogs", "GET /snapshots/{id}/build-logs", "", http.StatusOK, a.snapshotBuildLogs).ReadsContent(),
		httpapi.Op("getPushAccess", "GET /object-storage/push-access", "", http.StatusOK, a.pushAccess),
	}
}

// kept returns the service of templates, or an error where the server has none.
func (a *API) kept() (service.Templates, error) {
	if a.Templates == nil {
		return nil, fault.New(fault.Unsupported, "this server keeps no templates, which snapshots are").WithRemedy("begin with an image")
	}
	return a.Templates, nil
}

// snapshot returns a template as clients read it.
func (a *API) snapshot(t *template.Template) wire.Snapshot {
	sp := &t.Spec
	limits := sp.Limits.Or(bounded(defaults(), a.Server.Most()))
	out := wire.Snapshot{
		ID: t.ID, OrganizationID: t.Project, General: t.Project == template.Server, Name: t.Name, ImageName: cmp.Or(sp.Image, t.Image), State: snapshotState(t), Entrypoint: []string{},
		CPU: limits.CPU, Memory: float64(limits.MemoryMB) / 1024, Disk: float64(limits.DiskMB) / 1024,
		CreatedAt: t.CreatedAt, UpdatedAt: t.CreatedAt, RegionIDs: []string{a.target}, Ref: cmp.Or(t.Image, string(t.Snapshot)), Class: wire.ClassContainer,
	}
	if sp.Start.Command != "" {
		out.Entrypoint = []string{"/bin/sh", "-c", sp.Start.Command}
	}
	if sp.Of != "" {
		out.SourceSandboxID = (*string)(&sp.Of)
	}
	if f := t.Failure; f != nil {
		reason := f.Reason
		if last := strings.TrimSpace(f.Output); last != "" {
			reason += "\n" + last
		}
		out.ErrorReason = &reason
	}
	if sp.Dockerfile != "" {
		out.BuildInfo = &wire.Built{
			BuildInfo: wire.BuildInfo{Dockerfile: sp.Dockerfile, Contexts: append([]string{}, sp.Contexts...)}, CreatedAt: t.CreatedAt, UpdatedAt: t.CreatedAt, SnapshotRef: t.Image,
		}
	}
	return out
}

func snapshotState(t *template.Template) string {
	made := t.Spec.Dockerfile != "" || len(t.Spec.Steps) > 0
	switch {
	case t.Status == template.Building && made:
		return wire.SnapshotBuilding
	case t.Status == template.Building:
		return wire.SnapshotPulling
	case t.Status == template.Ready && t.Inactive:
		return wire.SnapshotInactive
	case t.Status == template.Ready:
		return wire.SnapshotActive
	case made:
		return wire.SnapshotBuildFailed
	}
	return wire.SnapshotError
}

type listSnapshots struct {
	Page  *int    `query:"page"`
	Limit *int    `query:"limit"`
	Name  *string `query:"name"`
	Of    *string `query:"sourceSandboxId"`
	Sort  *string `query:"sort"`
	Order *string `query:"order"`
}

// Bounds of a page.
const (
	defaultSnapshots = 100
	maxSnapshots     = 200
)

func (a *API) listSnapshots(ctx context.Context, c *httpapi.Call, in *listSnapshots) (wire.SnapshotPage, error) {
	out := wire.SnapshotPage{Items: []wire.Snapshot{}, Page: 1}
	limit := defaultSnapshots
	var bad []fault.Field
	add := func(name, message string) { bad = append(bad, fault.Field{Name: name, Message: message}) }
	if in.Page != nil {
		if out.Page = *in.Page; out.Page < 1 || out.Page > maxPages {
			add("page", "is outside 1 to "+strconv.Itoa(maxPages))
		}
	}
	if in.Limit != nil {
		if limit = *in.Limit; limit < 1 || limit > maxSnapshots {
			add("limit", "is outside 1 to "+strconv.Itoa(maxSnapshots))
		}
	}
	by, ok := snapshotOrders()[strings.ToLower(given(in.Sort))]
	if !ok {
		add("sort", sandbox.Clip(*in.Sort, 40)+" is not one of name, state, createdAt and lastUsedAt, which sorts as createdAt does")
	}
	order := strings.ToLower(given(in.Order))
	if order != "" && order != "asc" && order != "desc" {
		add("order", sandbox.Clip(*in.Order, 40)+" is neither asc nor desc")
	}
	if len(bad) > 0 {
		return out, fault.InvalidFields(bad...)
	}
	s, err := a.kept()
	if err != nil {
		return out, err
	}
	k, err := s.List(ctx, c.Caller)
	if err != nil {
		return out, err
	}
	all := newest(k.Templates)
	all = slices.DeleteFunc(all, func(t *template.Template) bool {
		return t.Spec.Origin == template.Sandbox || !strings.Contains(strings.ToLower(t.Name), strings.ToLower(given(in.Name))) || in.Of != nil && string(t.Spec.Of) != *in.Of
	})
	slices.SortStableFunc(all, func(x, y *template.Template) int {
		if order == "asc" {
			return by(x, y)
		}
		return by(y, x)
	})
	out.Total, out.TotalPages = len(all), (len(all)+limit-1)/limit
	all = all[min(len(all), (out.Page-1)*limit):]
	for _, t := range all[:min(len(all), limit)] {
		out.Items = append(out.Items, a.snapshot(t))
	}
	return out, nil
}

// snapshotOrders returns the orders of a list, by the names of their fields.
func snapshotOrders() map[string]func(a, b *template.Template) int {
	created := func(a, b *template.Template) int { return a.CreatedAt.Compare(b.CreatedAt) }
	return map[string]func(a, b *template.Template) int{
		"": created, "createdat": created, "lastusedat": created,
		"name":  func(a, b *template.Template) int { return strings.Compare(a.Name, b.Name) },
		"state": func(a, b *template.Template) int { return strings.Compare(snapshotState(a), snapshotState(b)) },
	}
}

// newest returns for each name the version that it stands for. The project's take precedence over the server's.
func newest(all []*template.Template) (out []*template.Template) {
	of, names := make(map[string][]*template.Template), []string(nil)
	for _, t := range all {
		was := of[t.Name]
		if was == nil {
			names = append(names, t.Name)
		}
		if was == nil || was[0].Project == t.Project {
			of[t.Name] = append(was, t)
		}
	}
	for _, name := range names {
		out = append(out, template.Pick(of[name], 0))
	}
	return out
}

func (a *API) getSnapshot(ctx context.Context, c *httpapi.Call, in *byRef) (wire.Snapshot, error) {
	s, err := a.kept()
	if err != nil {
		return wire.Snapshot{}, err
	}
	t, err := s.Get(ctx, c.Caller, in.Ref)
	if err != nil {
		return wire.Snapshot{}, asSnapshot(err)
	}
	return a.snapshot(t), nil
}

// asSnapshot returns an error about a missing template as one about a missing snapshot.
func asSnapshot(err error) error {
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	return fault.Wrap(fault.NotFound, err, "there is no snapshot of that name or id: %s", fault.As(err).Message).WithRemedy("list those that there are")
}

// allOf returns the reference to all versions of the name that ref stands for: clients know no versions.
func (a *API) allOf(ctx context.Context, c *httpapi.Call, s service.Templates, ref string) (string, error) {
	t, err := s.Get(ctx, c.Caller, ref)
	if err != nil {
		return "", asSnapshot(err)
	}
	if t.Project == template.Server {
		return t.ID, nil // its name may be the project's, too
	}
	return t.Name, nil
}

func (a *API) deleteSnapshot(ctx context.Context, c *httpapi.Call, in *byRef) (httpapi.None, error) {
	s, err := a.kept()
	if err != nil {
		return httpapi.None{}, err
	}
	ref, err := a.allOf(ctx, c, s, in.Ref)
	if err == nil {
		err = s.Delete(ctx, c.Caller, ref)
	}
	return httpapi.None{}, err
}

func (a *API) activateSnapshot(ctx context.Context, c *httpapi.Call, in *byRef) (wire.Snapshot, error) {
	return a.setActive(ctx, c, in.Ref, true)
}

func (a *API) deactivateSnapshot(ctx context.Context, c *httpapi.Call, in *byRef) (httpapi.None, error) {
	_, err := a.setActive(ctx, c, in.Ref, false)
	return httpapi.None{}, err
}

func (a *API) setActive(ctx context.Context, c *httpapi.Call, ref string, active bool) (wire.Snapshot, error) {
	s, err := a.kept()
	if err != nil {
		return wire.Snapshot{}, err
	}
	if ref, err = a.allOf(ctx, c, s, ref); err != nil {
		return wire.Snapshot{}, err
	}
	t, err := s.SetActive(ctx, c.Caller, ref, active)
	if err != nil {
		return wire.Snapshot{}, err
	}
	return a.snapshot(t), nil
}

type createSnapshot struct {
	Body wire.CreateSnapshot
}

// createSnapshot answers before an image is pulled or built.
func (a *API) createSnapshot(ctx context.Context, c *httpapi.Call, in *createSnapshot) (wire.Snapshot, error) {
	b := &in.Body
	s, err := a.kept()
	if err != nil {
		return wire.Snapshot{}, err
	}
	var bad []fault.Field
	a.lacks(target{GPU: b.GPU, Class: b.Class, Region: b.RegionID}, "regionId", func(lacks bool, field, message string) {
		if lacks {
			bad = append(bad, fault.Field{Name: field, Message: message})
		}
	})
	if err := unsupported(bad); err != nil {
		return wire.Snapshot{}, err
	}
	r := templates.Request{Name: b.Name, New: true, Bring: true, Spec: template.Spec{
		Image: given(b.ImageName), Limits: daytonaterms.Limits(given(b.CPU), given(b.Memory), given(b.Disk)).Or(bounded(defaults(), a.Server.Most())),
	}}
	if len(b.Entrypoint) > 0 {
		r.Spec.Start.Command = templates.Command(b.Entrypoint)
	}
	switch {
	case b.BuildInfo != nil && r.Spec.Image != "":
		return wire.Snapshot{}, fault.InvalidField("imageName", "is given beside buildInfo; give one of them")
	case b.BuildInfo != nil:
		if r.Spec.Image, err = onlyImage(b.BuildInfo); err != nil {
			return wire.Snapshot{}, err
		}
		if r.Spec.Image == "" {
			r.Spec.Dockerfile, r.Spec.Contexts = b.BuildInfo.Dockerfile, unique(b.BuildInfo.Contexts)
			if r.Files, err = a.context(c, b.BuildInfo); err != nil {
				return wire.Snapshot{}, err
			}
			r.Bring, r.Made = false, func() { a.contexts.Remove(c.Caller.Project, r.Spec.Contexts) }
		}
	case r.Spec.Image == "":
		return wire.Snapshot{}, fault.InvalidField("imageName", "is missing, and so is buildInfo")
	}
	t, _, err := s.Create(ctx, c.Caller, r)
	if err != nil {
		return wire.Snapshot{}, inSnapshotNames(err)
	}
	return a.snapshot(t), nil
}

// inSnapshotNames is inTheirNames for requests for a snapshot.
func inSnapshotNames(err error) error {
	var sp httpapi.Spellings
	for own, theirs := range map[string]string{
		"cpu_cores": "cpu", "limits.cpu": "cpu", "memory_mb": "memory", "limits.memory_mb": "memory", "disk_mb": "disk", "limits.disk_mb": "disk",
		"image": "imageName", "start.command": "entrypoint", "dockerfile": "buildInfo.dockerfileContent", "contexts": "buildInfo.contextHashes",
	} {
		sp.Wrote(own, theirs)
	}
	return sp.Rename(err)
}

type snapshotSandbox struct {
	Ref  string `path:"id"`
	Body wire.SnapshotSandbox
}

// snapshotSandbox answers with the sandbox when its disk is kept.
func (a *API) snapshotSandbox(ctx context.Context, c *httpapi.Call, in *snapshotSandbox) (*sandbox.Sandbox, error) {
	s, err := a.kept()
	if err != nil {
		return nil, err
	}
	if given(in.Body.IncludeMemory) {
		return nil, unsupported([]fault.Field{{Name: "includeMemory", Message: "a snapshot has the disk of a sandbox here, and not its memory"}})
	}
	if _, _, err := s.Create(ctx, c.Caller, templates.Request{Name: in.Body.Name, New: true, Sandbox: in.Ref}); err != nil {
		return nil, err
	}
	return a.Sandboxes.Get(ctx, c.Caller, in.Ref)
}

func (a *API) snapshotBuildLogsURL(ctx context.Context, c *httpapi.Call, in *byRef) (wire.Address, error) {
	s, err := a.kept()
	if err != nil {
		return wire.Address{}, err
	}
	t, err := s.Get(ctx, c.Caller, in.Ref)
	if err != nil {
		return wire.Address{}, asSnapshot(err)
	}
	return buildLogsURL(c, "/snapshots/"+t.ID), nil
}

type buildLogs struct {
	Ref    string `path:"id"`
	Follow *bool  `query:"follow"`
}

// snapshotBuildLogs answers with what the build of a snapshot writes, as text.
func (a *API) snapshotBuildLogs(ctx context.Context, c *httpapi.Call, in *buildLogs) error {
	if _, err := a.kept(); err != nil {
		return err
	}
	return a.answerLog(ctx, c, in.Ref, given(in.Follow))
}
