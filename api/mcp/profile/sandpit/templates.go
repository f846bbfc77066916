// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine/templates"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/template"
)

func noTemplates() error {
	return fault.New(fault.Unsupported, "this server keeps no templates")
}

func listTemplates() toolset.Tool {
	return toolset.Tool{
		Name: "list_templates", Title: "List templates", ReadOnly: true, Idempotent: true,
		About:   "List the templates that create_sandbox takes: of each the newest version, what it is of and what it starts.",
		Params:  []toolset.Param{{Name: "name", Kind: toolset.Text, About: "All versions of this one instead."}},
		Example: `{}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			name := c.Args.Text("name")
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			if c.Templates == nil {
				return nil, noTemplates()
			}
			kept, err := c.Templates.List(ctx, c.Caller)
			if err != nil {
				return nil, err
			}
			out := templateList{Templates: []templateShape{}}
			ans := new(toolset.Answer)
			seen := make(map[[2]string]bool)
			for _, t := range kept.Templates {
				k := [2]string{t.Project, t.Name}
				if name != "" && t.Name != name || name == "" && seen[k] {
					continue
				}
				seen[k] = true
				one := templateShapeOf(t)
				one.Default = t.Name == kept.ProjectDefault && t.Project != template.Server || t.Name == kept.ServerDefault && t.Project == template.Server
				out.Templates = append(out.Templates, one)
				ans.Lines = append(ans.Lines, one.line())
			}
			ans.Verdict, ans.Structured = toolset.Counted(len(out.Templates), "template", "templates"), out
			return ans, nil
		},
	}
}

// templateList is the structured answer of list_templates.
type templateList struct {
	Templates []templateShape `json:"templates"`
}

type templateShape struct {
	ID          string `json:"id"`
	Template    string `json:"template"` // NAME@VERSION
	Status      string `json:"status"`
	Default     bool   `json:"default,omitempty"`
	Image       string `json:"image,omitempty"`
	Snapshot    string `json:"snapshot,omitempty"`
	Start       string `json:"start,omitempty"`
	Description string `json:"description,omitempty"`
	FailedStep  int    `json:"failed_step,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Output      string `json:"output,omitempty"` // of the step that failed
}

func templateShapeOf(t *template.Template) templateShape {
	out := templateShape{ID: t.ID, Template: t.Ref(), Status: string(t.Status), Image: t.Spec.Image, Snapshot: string(t.Snapshot), Start: t.Spec.Start.Command, Description: t.Spec.Description}
	if f := t.Failure; f != nil {
		out.FailedStep, out.Reason, out.Output = f.Step, f.Reason, f.Output
	}
	return out
}

func (t *templateShape) line() string {
	line := t.Template + " · " + t.Status
	if t.Default {
		line += " · the default"
	}
	switch {
	case t.Snapshot != "":
		line += " · of the snapshot " + t.Snapshot
	case t.Image != "":
		line += " · of " + t.Image
	}
	if t.Start != "" {
		line += " · starts " + toolset.Quote(toolset.Clip(toolset.PrintablePath(t.Start)))
	}
	if t.Reason != "" {
		line += fmt.Sprintf(" · step %d: %s", t.FailedStep, toolset.PrintablePath(t.Reason))
	}
	if t.Description != "" {
		line += " · " + toolset.Clip(toolset.PrintablePath(t.Description))
	}
	return line
}

func createTemplate() toolset.Tool {
	return toolset.Tool{
		Name: "create_template", Title: "Create a template", Idempotent: true,
		About: "Add a version of a template, of which create_sandbox makes sandboxes: an image or a snapshot, with a command that runs from each start on. Versions never change.",
		Params: []toolset.Param{
			{Name: "name", Kind: toolset.Text, Required: true, About: "Lower-case letters, digits, dots, dashes; the same name again is its next version."},
			{Name: "image", Kind: toolset.Text, About: "What it runs on. Default: the server's.", Aliases: []string{"base"}},
			{Name: "snapshot", Kind: toolset.Text, Field: "from_snapshot", About: "Instead: begin with this named snapshot's files, an id or SANDBOX/NAME.", Aliases: []string{"from_snapshot"}},
			{Name: "steps", Kind: toolset.Text, About: "A shell script that is run as root in the image to make its files; list_templates shows how it went."},
			{Name: "start", Kind: toolset.Text, Field: "start.command", About: "A shell command that runs from each start on, such as a server."},
			{Name: "ready_port", Kind: toolset.Integer, Min: 0, Max: 65535, Field: "ready.port", About: "It is ready once something listens there; create_sandbox waits for that."},
			{Name: "env", Kind: toolset.Texts, About: "Environment variables; no secrets."},
			{Name: "account", Kind: toolset.Texts, About: "The user of its sandboxes: name, home, workdir, user."},
			{Name: "allow_domains", Kind: toolset.Text, About: "As for create_sandbox.", Aliases: []string{"domains"}},
			{Name: "network", Kind: toolset.Text, About: "off, restricted or open; it holds for the steps, too."},
		},
		Example: `{"name": "web", "start": "python3 -m http.server 8000", "ready_port": 8000}`,
		Run:     runCreateTemplate,
	}
}

func runCreateTemplate(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a := c.Args
	r := templates.Request{Name: a.Text("name"), From: a.Text("snapshot"), Spec: template.Spec{
		Image: a.Text("image"), Env: a.Env("env"), Account: account(a), Network: network(a),
		Start: sandbox.Start{Command: a.Text("start"), Ready: sandbox.Probe{Port: int(a.Number("ready_port", 0))}},
	}}
	if steps := a.Text("steps"); steps != "" {
		r.Spec.Steps = []string{steps}
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	if c.Templates == nil {
		return nil, noTemplates()
	}
	t, added, err := c.Templates.Create(ctx, c.Caller, r)
	if err != nil {
		return nil, err
	}
	out := templateShapeOf(t)
	ans := &toolset.Answer{Verdict: "created template " + t.Ref(), Structured: out}
	switch {
	case !added:
		ans.Verdict = "template " + t.Ref() + " is there already, and is the same"
	case t.Status == template.Building:
		ans.Verdict += ", whose steps are being done"
		ans.Lines = append(ans.Lines, "list_templates says when it is ready, or what failed")
	}
	return ans, nil
}

// madeShape is what a sandbox was made of, as the tools show it.
type madeShape struct {
	Template string `json:"template,omitempty"`  // NAME@VERSION
	ChosenBy string `json:"chosen_by,omitempty"` // where the caller did not
	Start    string `json:"start,omitempty"`
	Process  string `json:"start_process_id,omitempty"`
	Ready    *bool  `json:"ready,omitempty"`
	Reason   string `json:"not_ready,omitempty"`
	Output   string `json:"start_output,omitempty"`
}

// madeOf returns what a sandbox was made of, and what it starts; nil: of no template, and nothing.
func madeOf(s *sandbox.Sandbox) *madeShape {
	t := s.Template
	if t == nil || t.ID == "" && t.Start.Command == "" {
		return nil
	}
	out := &madeShape{Start: t.Start.Command, Process: s.StartProcess()}
	if t.ID != "" {
		out.Template = fmt.Sprintf("%s@%d", t.Name, t.Version)
		if t.ChosenBy != sandbox.ChosenExplicitly {
			out.ChosenBy = string(t.ChosenBy)
		}
	}
	if r := s.Readiness(); r != nil {
		out.Ready, out.Reason, out.Output = &r.OK, r.Reason, r.Output
	}
	return out
}

// note says what a caller has to know of what was made; "": nothing.
func (m *madeShape) note() string {
	if m == nil {
		return ""
	}
	note := ""
	if m.ChosenBy != "" {
		note = "it is made of the template " + m.Template + ", chosen by " + m.ChosenBy
	}
	if m.Ready != nil && !*m.Ready {
		if note != "" {
			note += "; "
		}
		note += "it runs, and what it starts is not ready: " + toolset.PrintablePath(m.Reason) + " (process " + m.Process + ")"
	}
	return note
}
