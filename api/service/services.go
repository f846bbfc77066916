// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"sandpit.dev/engine/images"
	"sandpit.dev/engine/points"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/engine/volume"
	"sandpit.dev/git"
	"sandpit.dev/sandbox"
)

// Services is what a coat is given: what implements each noun.
type Services struct {
	Sandboxes   Sandboxes
	Snapshots   Snapshots
	Volumes     Volumes
	Secrets     Secrets
	Commands    Commands
	Processes   Processes
	Shells      Shells
	Code        Code
	Runs        Runs
	Files       Files
	Points      Points
	Ports       Ports
	Networks    Networks
	Requests    Requests
	Activity    Activity
	Images      Images
	Keeper      Keeper      // nil: nobody administers images
	Dockerfiles Dockerfiles // nil: none is built
	Skills      Skills
	Git         Git
	Languages   Languages     // nil: language servers are not run; Daytona's coat needs them
	Templates   Templates     // nil: nobody keeps templates
	Settings    Settings      // nil: none can be changed
	Fleet       Fleet         // nil: nobody sees the sandboxes of all projects
	Projects    Projects      // nil: nobody keeps records of projects
	Usage       Usage         // nil: nobody adds up what is used
	Audit       Audit         // nil: there is no audit log
	Stats       Stats         // nil: nobody reads what is in use
	Doctor      Doctor        // nil: nobody checks the host
	Overview    Overview      // nil: nobody counts what happens
	Tokens      SandboxTokens // nil: single sandboxes have no tokens
	Events      Events        // nil: nobody keeps events
	Webhooks    Webhooks      // nil: there are none
	Versions    *Versions
	Server      Server
	Sizes       sandbox.Sizes // nil: those of a server whose operator set none
}

// SizeTable returns what the name of a size stands for, in every coat.
func (s *Services) SizeTable() sandbox.Sizes {
	if s.Sizes == nil {
		return sandbox.DefaultSizes()
	}
	return s.Sizes
}

// Engine is what implements every noun but those that have a package of their own, and
// what the small ones of these are made of; *engine.Engine does.
type Engine interface {
	Sandboxes
	Snapshots
	Commands
	Processes
	Networks
	Activity
	Server

	points.Engine
	secrets.Engine
	volume.Engine
	images.Source
}

// Sessions is what runs code and has shells; *code.Service does.
type Sessions interface {
	Code
	Shells
}

// Of returns the services of an engine and of what is built on it.
func Of(e Engine, f Files, p Ports, c Sessions, r Runs, q Requests, k Skills) Services {
	catalogue := images.NewCatalogue(e)
	return Services{
		Sandboxes: e,
		Snapshots: e,
		Volumes:   volume.NewService(e),
		Secrets:   secrets.NewService(e),
		Commands:  e,
		Processes: e,
		Shells:    c,
		Code:      c,
		Runs:      r,
		Files:     f,
		Points:    points.New(e),
		Ports:     p,
		Networks:  e,
		Requests:  q,
		Activity:  e,
		Images:    catalogue,
		Skills:    k,
		Git:       git.New(e, f),
		Versions:  &Versions{images: catalogue},
		Server:    e,
	}
}

// Complete reports whether there is something for every noun.
func (s *Services) Complete() bool {
	return s.Sandboxes != nil && s.Snapshots != nil && s.Volumes != nil && s.Secrets != nil && s.Commands != nil && s.Processes != nil && s.Shells != nil && s.Code != nil && s.Runs != nil && s.Files != nil && s.Points != nil && s.Ports != nil && s.Networks != nil && s.Requests != nil && s.Activity != nil && s.Images != nil && s.Skills != nil && s.Git != nil && s.Server != nil
}
