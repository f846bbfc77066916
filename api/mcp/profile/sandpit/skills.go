// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/sandbox"
	"sandpit.dev/skill"
)

// The skills that the caller's project keeps are found as ours is: among the resources, and by the
// extension's methods.
const (
	skillScheme   = "skill://"
	skillTemplate = skillScheme + "{skill}/{+path}"
	// skillsTTL is how long a client may keep a list of skills, in milliseconds.
	skillsTTL = 60_000
)

type (
	skillsParams struct {
		mcp.ParamsBase
		Cursor string `json:"cursor,omitempty"`
		URI    string `json:"uri,omitempty"`
	}
	skillsResult struct {
		mcp.ResultBase
		ResultType string         `json:"resultType"`
		TTLMs      int            `json:"ttlMs"`
		CacheScope string         `json:"cacheScope"`
		Skills     []*listedSkill `json:"skills,omitempty"`
		Skill      *listedSkill   `json:"skill,omitempty"`
	}
	// skillCaller is the key of who calls a method of the extension.
	skillCaller struct{}
)

// serveSkills adds the project's skills to a server.
func (sp *profile) serveSkills(s *mcp.Server) {
	s.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: skillTemplate, Name: "skill", Title: "A file of a skill",
		Description: "Any file of a skill that the project keeps, by the skill's name and the file's path; SKILL.md says what the others are. create_sandbox with skills puts all of them into a sandbox, under " + sandbox.Skills + ".",
	}, sp.readSkillFile)
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			caller := transport.CallOf(req).Caller
			res, err := next(context.WithValue(ctx, skillCaller{}, caller), method, req)
			list, ok := res.(*mcp.ListResourcesResult)
			if !ok || err != nil || list.NextCursor != "" {
				return res, err
			}
			kept, err := sp.Skills.ListSkills(ctx, caller, "")
			if err != nil {
				sp.log.WarnContext(ctx, "skills cannot be listed", "error", err)
				return res, nil
			}
			out := *list
			out.Resources = slices.Clone(list.Resources)
			for _, k := range kept {
				out.Resources = append(out.Resources, &mcp.Resource{
					URI: skillURI(k, skill.File), Name: k.Name, Description: k.Description, MIMEType: toolset.MediaOf(skill.File), Size: sizeIn(k, skill.File),
					Annotations: &mcp.Annotations{LastModified: toolset.TimeText(k.UpdatedAt)},
				})
			}
			return &out, nil
		}
	})
	result := skillsResult{ResultType: "complete", TTLMs: skillsTTL, CacheScope: "private"}
	// Refused would be the names of the protocol's own methods, and nothing else.
	_ = mcp.AddReceivingCustomMethod(s, "skills/list", func(ctx context.Context, _ *mcp.ServerSession, p *skillsParams) (*skillsResult, error) {
		if p != nil && p.Cursor != "" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is one page of skills, and the cursor is of none"}
		}
		all, err := sp.listed(ctx)
		if err != nil {
			return nil, err
		}
		out := result
		out.Skills = all
		return &out, nil
	})
	_ = mcp.AddReceivingCustomMethod(s, "skills/get", func(ctx context.Context, _ *mcp.ServerSession, p *skillsParams) (*skillsResult, error) {
		all, err := sp.listed(ctx)
		if err != nil {
			return nil, err
		}
		for _, k := range all {
			if p != nil && p.URI == k.URI {
				out := result
				out.Skill = k
				return &out, nil
			}
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is no such skill; skills/list says which there are"}
	})
}

// listed returns our skill and those of the caller's project.
func (sp *profile) listed(ctx context.Context) ([]*listedSkill, error) {
	caller, _ := ctx.Value(skillCaller{}).(access.Caller)
	kept, err := sp.Skills.ListSkills(ctx, caller, "")
	if err != nil {
		return nil, resourceError(skillScheme, err)
	}
	out := []*listedSkill{sp.skill}
	for _, k := range kept {
		l := &listedSkill{URI: skillURI(k, skill.File), Frontmatter: map[string]any{"name": k.Name, "description": k.Description}}
		for name, v := range map[string]string{"author": k.Author, "version": k.Version, "license": k.License, "compatibility": k.Compatibility} {
			if v != "" {
				l.Frontmatter[name] = v
			}
		}
		if len(k.AllowedTools) > 0 {
			l.Frontmatter["allowed-tools"] = k.AllowedTools
		}
		for _, f := range k.Files {
			l.Resources = append(l.Resources, skillPart{URI: skillURI(k, f.Path), Size: int(f.Size)})
		}
		out = append(out, l)
	}
	return out, nil
}

// skillURI is the address of a file of a skill. One that has our skill's name is named by its id.
func skillURI(k *skill.Skill, p string) string {
	name := k.Name
	if skillScheme+name+"/" == skillRoot {
		name = k.ID
	}
	return skillScheme + name + (&url.URL{Path: "/" + p}).EscapedPath()
}

func sizeIn(k *skill.Skill, p string) int64 {
	for _, f := range k.Files {
		if f.Path == p {
			return f.Size
		}
	}
	return 0
}

// readSkillFile reads a file of a skill that the project keeps.
func (sp *profile) readSkillFile(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "skill" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, noResource(uri, "it is not an address of the form "+skillTemplate)
	}
	call := transport.CallOf(req)
	k, err := sp.Skills.Skill(ctx, call.Caller, u.Host)
	if err != nil {
		return nil, resourceError(uri, err)
	}
	p := strings.TrimPrefix(u.Path, "/")
	data := []byte(k.Text)
	if p != skill.File {
		// Both the package and its files are in memory for this.
		if err := call.Reserve(ctx, 2*skill.MaxBytes); err != nil {
			return nil, resourceError(uri, err)
		}
		_, pkg, err := sp.Skills.SkillPackage(ctx, call.Caller, k.ID)
		if err != nil {
			return nil, resourceError(uri, err)
		}
		whole, err := skill.Read(pkg)
		if err != nil {
			return nil, resourceError(uri, err)
		}
		var ok bool
		if data, ok = whole.Read(p); !ok {
			return nil, noResource(uri, "the skill "+k.Name+" has no such file; it has "+filesText(k))
		}
	}
	res, size, err := readWhole(uri, path.Base(p), bytes.NewReader(data))
	if err != nil {
		return nil, resourceError(uri, err)
	}
	if res == nil {
		return nil, noResource(uri, tooLong(size)+"install the skill into a sandbox and read it there")
	}
	return res, nil
}

func filesText(k *skill.Skill) string {
	all := make([]string, len(k.Files))
	for i, f := range k.Files {
		all[i] = f.Path
	}
	return toolset.Clip(strings.Join(all, ", "))
}

// paramSkills is the argument that names skills.
func paramSkills(required bool, about string) toolset.Param {
	return toolset.Param{Name: "skills", Kind: toolset.Text, Required: required, Field: "skill_ids", About: about, Aliases: []string{"skill_ids", "skill"}}
}

func installSkills() toolset.Tool {
	return toolset.Tool{
		Name: "install_skills", Title: "Install skills", Idempotent: true,
		About: "Put skills that your project keeps into a sandbox, each under " + sandbox.Skills + "/NAME with its scripts. list_skills or the resources skill://… say which there are.",
		Params: []toolset.Param{
			paramSandbox(),
			paramSkills(true, "Names or ids, separated by commas."),
		},
		Example: `{"sandbox": "my-project", "skills": "pdf"}`,
		Run:     runInstallSkills,
	}
}

// installedShape is the structured answer of install_skills.
type installedShape struct {
	Installed        []string       `json:"installed"`
	AlreadyInstalled []string       `json:"already_installed"`
	NotFound         []string       `json:"not_found"`
	ExtractionErrors []failureShape `json:"extraction_errors"`
}

type failureShape struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Error string `json:"error"`
}

func runInstallSkills(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	refs := c.Args.List("skills")
	if _, err := place(ctx, c, true); err != nil {
		return nil, err
	}
	got, err := c.Skills.InstallSkills(ctx, c.Caller, c.Ref, refs)
	if err != nil {
		return nil, err
	}
	out := installedShape{append([]string{}, got.New...), append([]string{}, got.Already...), append([]string{}, got.Missing...), []failureShape{}}
	ans := &toolset.Answer{Verdict: toolset.Counted(len(got.New), "skill", "skills") + " installed in " + c.Ref}
	if n := len(got.Missing) + len(got.Failed); n > 0 {
		ans.Verdict += fmt.Sprintf(", %d not", n)
	}
	for _, name := range got.New {
		ans.Lines = append(ans.Lines, "read "+path.Join(sandbox.Skills, name, skill.File)+" before you use it")
	}
	for _, name := range got.Already {
		ans.Lines = append(ans.Lines, path.Join(sandbox.Skills, name)+" was there as it is")
	}
	for _, ref := range got.Missing {
		ans.Lines = append(ans.Lines, "there is no skill "+toolset.Quote(toolset.PrintablePath(ref)))
	}
	for _, f := range got.Failed {
		out.ExtractionErrors = append(out.ExtractionErrors, failureShape{f.ID, f.Name, f.Reason})
		ans.Lines = append(ans.Lines, f.Name+" cannot be installed: "+toolset.PrintablePath(f.Reason))
	}
	ans.Structured = out
	return ans, nil
}

func listSkills() toolset.Tool {
	return toolset.Tool{
		Name: "list_skills", Title: "List skills", ReadOnly: true, Idempotent: true,
		About:   "List the skills that your project keeps, with what each is for. Read one by its resource address.",
		Params:  []toolset.Param{{Name: "search", Kind: toolset.Text, About: "Only those with this in name, description or tags.", Aliases: []string{"query"}}},
		Example: `{}`,
		Run: func(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
			search := c.Args.Text("search")
			if err := c.Args.Err(); err != nil {
				return nil, err
			}
			kept, err := c.Skills.ListSkills(ctx, c.Caller, search)
			if err != nil {
				return nil, err
			}
			out := skillList{Skills: make([]skillShape, 0, len(kept))}
			ans := &toolset.Answer{Verdict: toolset.Counted(len(kept), "skill", "skills")}
			for _, k := range kept {
				out.Skills = append(out.Skills, skillShape{k.ID, k.Name, k.Description, k.Version, skillURI(k, skill.File)})
				ans.Lines = append(ans.Lines, k.Name+" · "+toolset.Clip(toolset.PrintablePath(k.Description))+" · "+skillURI(k, skill.File))
			}
			ans.Structured = out
			return ans, nil
		},
	}
}

// skillList is the structured answer of list_skills.
type skillList struct {
	Skills []skillShape `json:"skills"`
}

type skillShape struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Version     string `json:"version,omitempty"`
	URI         string `json:"uri"`
}
