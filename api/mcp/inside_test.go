// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/service"
	"sandpit.dev/engine/skills"
	"sandpit.dev/image"
)

// oneImage lists an image in a state, whatever the engine has.
type oneImage struct{ status *image.Status }

func (o oneImage) BuildImage(context.Context, access.Caller, string) (image.Status, error) {
	return *o.status, nil
}

func (o oneImage) PullImage(context.Context, access.Caller, string) (image.Status, error) {
	return *o.status, nil
}

func (o oneImage) ImportImages(context.Context, access.Caller, io.Reader, string) ([]image.Status, error) {
	return []image.Status{*o.status}, nil
}

func (o oneImage) Images(context.Context, access.Caller) ([]image.Status, error) {
	return []image.Status{*o.status}, nil
}

func (o oneImage) HasImage(context.Context, access.Caller, string) (bool, error) {
	return o.status.State == image.Ready, nil
}

// bigImage has as many versions as a real one, and longer ones.
func bigImage() image.Status {
	versions := make(map[string]string)
	for _, name := range strings.Fields("bash curl debian gcc git gxx ipython jq make matplotlib node npm numpy pandas pip pytest python requests ripgrep rsync ssh wget") {
		versions[name] = "22.23.34"
	}
	absent := strings.Fields("cargo cmake docker go java php ruby scipy sklearn torch uv")
	return image.Status{State: image.Ready, Image: image.Image{Versions: versions, Absent: absent}}
}

func TestInstructionsAndDescriptionsTellWhatIsInside(t *testing.T) {
	t.Parallel()
	for _, profile := range mcp.Profiles() {
		for _, version := range []string{handshake, stateless} {
			t.Run(profile+"/"+version, func(t *testing.T) {
				h := open(t)
				status := image.Status{State: image.Missing}
				s := service.Of(h.engine, h.inside, portsOf(h.engine), h.code, h.runs, deskOf(h.engine), skills.New(h.engine, skills.Options{}))
				s.Images = oneImage{&status}
				h.handler, h.url = serveWith(t, mcp.Options{Services: s, Profile: profile, Version: "test"})
				read := func() (instructions, tools string) {
					session := h.session("t-alice", version, nil)
					data, err := json.Marshal(listed(t, session).Tools)
					if err != nil {
						t.Fatal(err)
					}
					return session.InitializeResult().Instructions, string(data)
				}

				instructions, tools := read()
				if all := instructions + tools; strings.Contains(all, toolset.InsideMark) || strings.Contains(all, "(inside") || instructions == "" {
					t.Errorf("before an image is built:\n%s\n%s", instructions, tools)
				}

				status = bigImage()
				instructions, tools = read()
				wantParts(t, instructions, " (inside: bash 22.23.34, curl ", "wget 22.23.34; not inside: cargo, cmake, ", " uv)")
				if len(instructions) > 2000 {
					t.Errorf("the instructions have %d bytes, and clients show 2,000", len(instructions))
				}
				if profile == mcp.Profiles()[0] {
					wantParts(t, tools, "pandas 22.23.34", "docker")
				}
				if n := len(tools) / 4; n > 6000 || strings.Contains(instructions+tools, toolset.InsideMark) {
					t.Errorf("the tools have about %d tokens, want at most 6000:\n%s", n, tools)
				}
			})
		}
	}
}

func TestCreateTellsTheImageAskedForAndWhatIsInside(t *testing.T) {
	t.Parallel()
	for profile, asked := range map[string]struct {
		tool string
		args arguments
		want []string
	}{
		"sandpit": {"create_sandbox", arguments{"image": "python-3.12"}, []string{"image python, asked for as python-3.12 (inside: python 3.13.5)", `"python-3.12" names python 3.12, and the image python has python 3.13.5`}},
		"orkestr": {"create_sandbox", arguments{"template": "python-3.12"}, []string{`"template":"python-3.12"`, `"image":"python"`, `"image_versions":{"python":"3.13.5"}`, `names python 3.12, and the image python has python 3.13.5`}},
		"daytona": {"create_sandbox", arguments{"snapshot": "python-3.12"}, []string{`the image "python-3.12" is python here: python 3.13.5`, `"python-3.12" names python 3.12, and the image python has python 3.13.5`}},
	} {
		t.Run(profile, func(t *testing.T) {
			h := open(t)
			s := service.Of(h.engine, h.inside, portsOf(h.engine), h.code, h.runs, deskOf(h.engine), skills.New(h.engine, skills.Options{}))
			h.handler, h.url = serveWith(t, mcp.Options{Services: s, Profile: profile, Version: "test"})
			var got strings.Builder
			for _, part := range call(t, h.alice(), asked.tool, asked.args).Content {
				if c, ok := part.(*sdk.TextContent); ok {
					for line := range strings.Lines(c.Text) {
						got.WriteString(strings.TrimSpace(strings.ReplaceAll(line, `": `, `":`)))
					}
				}
			}
			wantParts(t, got.String(), asked.want...)
		})
	}
}
