// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/engine"
)

// prompt is work that people begin often.
type prompt struct {
	name, title, about string
	args               []*mcp.PromptArgument
	text               func(get func(string) string) string
}

func prompts() []prompt {
	where := &mcp.PromptArgument{Name: "sandbox", Title: "Sandbox", Description: "Name or id of the sandbox; left out: your default one."}
	in := func(get func(string) string) string {
		if s := get("sandbox"); s != "" {
			return "Work in the sandbox " + toolset.Quote(s) + "."
		}
		return "Work in the default sandbox."
	}
	return []prompt{
		{
			"test_repository", "Run a repository's tests", "Clone a repository, install what it needs, run its tests and report.",
			[]*mcp.PromptArgument{{Name: "repository", Title: "Repository", Description: "Its address, or a directory of the sandbox.", Required: true}, where},
			func(get func(string) string) string {
				return fmt.Sprintf(`Run the tests of the repository %s.

1. %s Clone it below /workspace, or go there if it is a directory.
2. Find out how it is built and tested: look for a README, a Makefile, CI files.
3. Install what it needs. If the network refuses something, say what, and ask before you look for another way.
4. Run the tests; if they take long, in the background with read_process.
5. Report: how many passed and failed, and for each failure the cause with file and line. Change nothing in the repository.`, toolset.Quote(get("repository")), in(get))
			},
		},
		{
			"analyse_data", "Analyse a data file", "Look into a data file, answer a question about it, and leave plots and a summary.",
			[]*mcp.PromptArgument{{Name: "path", Title: "File", Description: "Its path in the sandbox.", Required: true}, {Name: "question", Title: "Question", Description: "What you want to know of it."}, where},
			func(get func(string) string) string {
				question := get("question")
				if question == "" {
					question = "What is in it, and what stands out?"
				}
				return fmt.Sprintf(`Analyse the data file %s. The question: %s

1. %s Look at the file's beginning and size first, with read_file or run_command.
2. Load it with run_code, in which variables stay; check types, missing values and odd rows before you compute.
3. Answer the question with figures, and one or two plots where they say more. Save plots and a short summary under /artifacts.
4. Report the answer, how sure it is, and links to the files.`, toolset.Quote(get("path")), question, in(get))
			},
		},
		{
			"reproduce_bug", "Reproduce a bug", "Make a bug happen in a sandbox, with the shortest steps, and find its cause.",
			[]*mcp.PromptArgument{{Name: "description", Title: "Description", Description: "What happens, and what was expected.", Required: true}, {Name: "path", Title: "Code", Description: "Where the code is: a directory of the sandbox, or a repository."}, where},
			func(get func(string) string) string {
				code := get("path")
				if code == "" {
					code = "/workspace"
				}
				return fmt.Sprintf(`Reproduce this bug: %s

1. %s The code is in %s.
2. Write the shortest script or test that shows it, and run it; show the output that proves it.
3. Make it shorter while it still fails. Then find the cause: the file, the line, and why.
4. Report the steps, the cause and a fix. Apply the fix only if you are asked to.`, get("description"), in(get), toolset.Quote(code))
			},
		},
	}
}

// maxPromptArgument bounds an argument of a prompt, in bytes.
const maxPromptArgument = 16 << 10

// servePrompts adds them to a server.
func servePrompts(s *mcp.Server) {
	for _, p := range prompts() {
		s.AddPrompt(&mcp.Prompt{Name: p.name, Title: p.title, Description: p.about, Arguments: p.args},
			func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				given := req.Params.Arguments
				for _, a := range p.args {
					switch v := given[a.Name]; {
					case a.Required && strings.TrimSpace(v) == "":
						return nil, badPrompt("the prompt %s needs the argument %s: %s", p.name, a.Name, a.Description)
					case len(v) > maxPromptArgument:
						return nil, badPrompt("the argument %s has %d bytes, more than %d", a.Name, len(v), maxPromptArgument)
					}
				}
				return &mcp.GetPromptResult{Description: p.about, Messages: []*mcp.PromptMessage{
					{Role: "user", Content: &mcp.TextContent{Text: p.text(func(name string) string { return given[name] })}},
				}}, nil
			})
	}
}

func badPrompt(format string, v ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, v...)}
}

// mostCompleted is the protocol's own bound.
const mostCompleted = 100

// complete returns the names of sandboxes that an argument may be.
func (sp *profile) complete(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	out := &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}
	p := req.Params
	if p == nil || p.Ref == nil {
		return out, nil
	}
	of := p.Ref.Type == "ref/prompt" && p.Argument.Name == "sandbox" || p.Ref.Type == "ref/resource" && p.Ref.URI == fileTemplate && p.Argument.Name == "id"
	if !of {
		return out, nil
	}
	page, err := sp.Sandboxes.List(ctx, transport.CallOf(req).Caller, engine.SandboxesRequest{Search: p.Argument.Value, Limit: mostCompleted})
	if err != nil {
		return out, nil // nothing to offer
	}
	for _, s := range page.Items {
		out.Completion.Values = append(out.Completion.Values, s.Ref())
	}
	out.Completion.Total, out.Completion.HasMore = page.Total, page.Total > len(page.Items)
	return out, nil
}
