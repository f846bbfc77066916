// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"

	"sandpit.dev/access/project"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/projects"
)

func (a *API) projects() (service.Projects, error) {
	if a.Projects == nil {
		return nil, fault.New(fault.Unsupported, "this server keeps no records of projects")
	}
	return a.Projects, nil
}

func (a *API) listProjects(ctx context.Context, c *call, _ *httpapi.NoInput) (v1.ProjectList, error) {
	s, err := a.projects()
	if err != nil {
		return v1.ProjectList{}, err
	}
	all, err := s.List(ctx, c.Caller)
	out := v1.ProjectList{Items: make([]v1.Project, 0, len(all))}
	for i := range all {
		out.Items = append(out.Items, projectOf(&all[i]))
	}
	return out, err
}

type createProject struct{ Body v1.CreateProject }

func (a *API) createProject(ctx context.Context, c *call, in *createProject) (v1.Project, error) {
	s, err := a.projects()
	if err != nil {
		return v1.Project{}, err
	}
	quotas, err := amountsByName(in.Body.Quotas)
	if err != nil {
		return v1.Project{}, err
	}
	p, err := s.Create(ctx, c.Caller, in.Body.Name, quotas)
	if err != nil {
		return v1.Project{}, err
	}
	c.W.Header().Set("Location", "/v1/projects/"+p.Name)
	return projectOf(&p), nil
}

type byProject struct {
	Name string `path:"name" doc:"the project's name"`
}

func (a *API) getProject(ctx context.Context, c *call, in *byProject) (v1.Project, error) {
	s, err := a.projects()
	if err != nil {
		return v1.Project{}, err
	}
	p, err := s.Get(ctx, c.Caller, in.Name)
	if err != nil {
		return v1.Project{}, err
	}
	return projectOf(&p), nil
}

type updateProject struct {
	byProject
	Body v1.UpdateProject
}

func (a *API) updateProject(ctx context.Context, c *call, in *updateProject) (v1.Project, error) {
	s, err := a.projects()
	if err != nil {
		return v1.Project{}, err
	}
	quotas, err := amountsByName(in.Body.Quotas)
	if err != nil {
		return v1.Project{}, err
	}
	p, err := s.Change(ctx, c.Caller, in.Name, quotas)
	if err != nil {
		return v1.Project{}, err
	}
	return projectOf(&p), nil
}

func (a *API) deleteProject(ctx context.Context, c *call, in *byProject) (httpapi.None, error) {
	s, err := a.projects()
	if err != nil {
		return httpapi.None{}, err
	}
	return httpapi.None{}, s.Delete(ctx, c.Caller, in.Name)
}

func projectOf(p *projects.Status) v1.Project {
	out := v1.Project{Name: p.Name, CreatedAt: p.CreatedAt.UTC(), CreatedBy: p.CreatedBy, CommandsResetAt: p.CommandsEnd, BudgetResetAt: p.MonthEnd}
	var quotas, used, left amountsOn
	for _, r := range project.Resources() {
		used.set(r, p.Use[r])
		if n, ok := p.Left(r); ok {
			quotas.set(r, p.Quotas[r])
			left.set(r, n)
		}
	}
	out.Quotas, out.Used, out.Left = quotas.Amounts, used.Amounts, left.Amounts
	return out
}

// amountsOn is a v1.Amounts whose fields are set by resource.
type amountsOn struct{ v1.Amounts }

func (a *amountsOn) set(r project.Resource, v float64) {
	if r == project.CPU {
		a.CPUCores = &v
		return
	}
	for of, field := range map[project.Resource]**int64{
		project.Sandboxes: &a.Sandboxes, project.Running: &a.Running, project.Memory: &a.MemoryMB, project.Processes: &a.Processes,
		project.Disk: &a.DiskMB, project.Snapshots: &a.Snapshots, project.Volumes: &a.Volumes, project.Commands: &a.CommandsPerDay,
		project.CPUSeconds: &a.CPUSecondsPerMonth, project.MemorySeconds: &a.MemoryGiBSecondsPerMonth,
	} {
		if of == r {
			*field = new(int64(v))
		}
	}
}

// amountsByName returns the fields that are there by their names, which are those of the resources; nil for nil.
func amountsByName(a *v1.Amounts) (out map[string]float64, err error) {
	if a == nil {
		return nil, nil
	}
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	return out, json.Unmarshal(text, &out)
}
