// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/shape"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// Projects returns the records of projects, or an error where there are none.
func Projects(p service.Projects) (service.Projects, error) {
	if p == nil {
		return nil, fault.New(fault.Unsupported, "this server keeps no records of projects")
	}
	return p, nil
}

func (a *API) listProjects(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (v1.ProjectList, error) {
	s, err := Projects(a.Projects)
	if err != nil {
		return v1.ProjectList{}, err
	}
	all, err := s.List(ctx, c.Caller)
	out := v1.ProjectList{Items: make([]v1.Project, 0, len(all))}
	for i := range all {
		out.Items = append(out.Items, shape.Project(&all[i]))
	}
	return out, err
}

type createProject struct{ Body v1.CreateProject }

func (a *API) createProject(ctx context.Context, c *httpapi.Call, in *createProject) (v1.Project, error) {
	s, err := Projects(a.Projects)
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
	return shape.Project(&p), nil
}

type byProject struct {
	Name string `path:"name" doc:"the project's name"`
}

func (a *API) getProject(ctx context.Context, c *httpapi.Call, in *byProject) (v1.Project, error) {
	s, err := Projects(a.Projects)
	if err != nil {
		return v1.Project{}, err
	}
	p, err := s.Get(ctx, c.Caller, in.Name)
	if err != nil {
		return v1.Project{}, err
	}
	return shape.Project(&p), nil
}

type updateProject struct {
	byProject
	Body v1.UpdateProject
}

func (a *API) updateProject(ctx context.Context, c *httpapi.Call, in *updateProject) (v1.Project, error) {
	s, err := Projects(a.Projects)
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
	return shape.Project(&p), nil
}

func (a *API) deleteProject(ctx context.Context, c *httpapi.Call, in *byProject) (httpapi.None, error) {
	s, err := Projects(a.Projects)
	if err != nil {
		return httpapi.None{}, err
	}
	return httpapi.None{}, s.Delete(ctx, c.Caller, in.Name)
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
