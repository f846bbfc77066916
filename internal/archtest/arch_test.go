// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "sandpit.dev"

// pkg is what `go list -json` prints of a package.
type pkg struct {
	ImportPath string
	Dir        string
	Doc        string
	Imports    []string
	GoFiles    []string
}

func packages(t *testing.T) map[string]pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Doc,Imports,GoFiles", module+"/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string]pkg{}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for dec.More() {
		var p pkg
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
	return all
}

// rule says what the packages below a path may import of ours. A path covers
// the packages below it too; the longest that fits is the one that holds.
type rule struct {
	path   string
	may    []string
	reason string
}

// The rules, from the nouns up. What is not in the list may import nothing of ours.
var rules = []rule{
	{"fault", nil, "the error type is at the bottom"},
	{"trace", nil, "a span is made the same whatever it is of"},
	{"trace/otlp", []string{"trace"}, "spans are sent the same whatever they are of; only the wiring knows it"},
	{"redact", nil, "it is linked into the agent, which lives among untrusted code, and into all that shows text"},
	{"redact/redactlog", []string{"redact"}, "it stands before any handler of a log"},
	{"redact/deep", []string{"redact"}, "it finds values in text; whose text it is it does not know"},
	{"redact/redacttest", []string{"redact"}, "the suite looks at a place from outside"},
	{"sandbox", []string{"fault", "internal/excerpt"}, "nouns know no contract and no verb"},
	{"access", []string{"fault", "sandbox"}, "who may do what is a noun too"},
	{"access/bearer", []string{"fault", "sandbox", "access", "store"}, "tokens are checked against the store's contract, not a database"},
	{"linux", []string{"fault", "linux/sparse", "internal/atomicfile", "internal/cleanup", "internal/printable"}, "what Linux offers is the same for every driver: it knows no sandbox and no driver"},
	{"linux/steer", []string{"fault", "internal/cleanup", "linux/destination", "linux/route"}, "it knows namespaces and sockets, never a policy or a sandbox"},
	{"linux/tproxy", []string{"fault", "linux/destination", "linux/route"}, "it knows rules and sockets, and is linked into the agent"},
	{"linux/route", nil, "it is linked into the agent"},
	{"linux/destination", nil, "it is linked into the agent"},
	{"linux/inuse", []string{"fault"}, "it reads what the kernel says of the whole machine, and knows no sandbox"},
	{"linux/merged", []string{"fault", "sandbox", "internal/printable"}, "it reads the files of disks in the words of the contract, and knows neither how they are kept nor whose they are"},
	{"linux/sparse", nil, "it is linked into the agent"},
	{"linux/overroot", nil, "it is linked into the agent"},
	{"linux/mount", nil, "it wraps system calls and knows nothing of sandboxes"},
	{"linux/spawn", nil, "it starts a process and knows nothing of what that is"},
	{"linux/seccomp/install", nil, "it is linked into the agent"},
	{"linux/cgroup/counter", nil, "it is linked into the agent"},
	{"runtime", []string{"fault", "sandbox"}, "the contract knows no driver"},
	{"runtime/native", []string{"fault", "sandbox", "runtime", "agent", "agent/sudo", "agent/server/accounts", "agent/server/fork", "agent/server/kept", "linux", "linux/merged", "linux/mount", "linux/spawn", "linux/steer", "internal"}, "a driver knows neither engine nor store nor api"},
	{"runtime/native/inside", []string{"fault", "agent/server", "runtime/native/boot", "linux/seccomp/install", "linux/cgroup/counter"}, "it is linked into the agent, which lives among untrusted code"},
	{"runtime/native/furnish", []string{"fault", "agent/sudo", "linux/mount", "linux/spawn", "runtime/native/boot"}, "it makes mounts and namespaces, and knows no disk, no limit and no life; of the message to the agent it knows the names of the files that it makes for it, and of sudo where it is"},
	{"runtime/native/seed", []string{"agent/server/accounts", "agent/server/dirs"}, "it writes as the agent would, from outside, and knows no sandbox"},
	{"runtime/native/boot", nil, "it is linked into the agent"},
	{"runtime/disk", []string{"fault", "sandbox", "linux/sparse", "internal/printable"}, "it compares and checks archives of disks, and knows neither an Engine nor a cluster"},
	{"runtime/throughagent", []string{"fault", "sandbox", "runtime", "agent"}, "it speaks to an agent for a driver, and knows neither an Engine nor a cluster"},
	{"runtime/docker", []string{"fault", "sandbox", "runtime", "runtime/disk", "runtime/throughagent", "agent", "agent/handshake", "agent/mux", "agent/traffic", "image/oci", "linux", "linux/mount", "linux/steer"}, "a driver knows neither engine nor store nor api; an Engine takes images as the archives that image/oci writes, and the server does in a container's mounts what an Engine does not"},
	{"runtime/kubernetes", []string{"fault", "sandbox", "runtime", "runtime/disk", "runtime/throughagent", "agent", "agent/handshake", "agent/mux", "agent/traffic", "blob", "blob/chunks", "blob/configured", "blob/dir"}, "a driver knows neither engine nor store nor api"},
	{"runtime/kubernetes/kubeapi", []string{"fault"}, "it speaks to an API server, and knows no sandbox and no driver"},
	{"runtime/docker/engineapi", []string{"fault"}, "it speaks to an Engine, and knows no sandbox and no driver"},
	{"runtime/memory", []string{"fault", "sandbox", "runtime", "agent", "agent/server", "linux/merged", "internal"}, "the fake is a driver like another"},
	{"runtime/runtimetest", []string{"fault", "sandbox", "runtime", "agent", "network/egress", "network/policy", "internal"}, "the suite looks at a sandbox only through contract and agent; its attacks on the network meet the gate that sandboxes have"},
	{"skill", []string{"fault", "sandbox"}, "a skill is read and checked without knowing who keeps it, or where it goes"},
	{"template", []string{"sandbox"}, "a template is named, compared and chosen without knowing who keeps it"},
	{"access/seen", []string{"sandbox", "access"}, "it remembers what clients said of themselves; the protocol it does not know"},
	{"access/session", []string{"fault", "sandbox", "access", "access/bearer", "store"}, "a session is bound to a token, and checked against the store's contract"},
	{"access/issuer", []string{"fault", "sandbox", "access"}, "tokens of others are checked by what they say and by their issuers' keys: it knows no record"},
	{"store", []string{"fault", "sandbox", "access", "skill", "template", "access/project"}, "the contract knows no database"},
	{"agent", []string{"fault", "sandbox", "agent/wire", "internal/excerpt", "internal/printable"}, "the daemon's half speaks the wire and nothing else"},
	{"agent/wire", []string{"fault", "internal/excerpt"}, "both halves share only the wire"},
	{"agent/sudo", nil, "it is what both ends of a sandbox's sudo have in common, and linked into the agent"},
	{"agent/sudo/program", []string{"agent/sudo"}, "it is what anybody in a sandbox may run, and asks by agent/sudo alone"},
	{"agent/server", []string{"fault", "agent/sudo", "agent/wire", "linux/sparse", "redact", "internal/glob", "internal/excerpt"}, "the inside half imports nothing of the daemon's: it runs among untrusted code; files with holes are in its archives as they are in the server's"},
	{"agent/boot/plain", []string{"agent/handshake", "agent/serve", "agent/server", "agent/server/keeper", "agent/server/kept", "agent/traffic", "agent/wire", "linux/cgroup/counter", "linux/overroot"}, "it is linked into the agent"},
	{"agent/handshake", []string{"fault"}, "it knows a key and a connection, in the agent and in the server"},
	{"agent/mux", nil, "it knows streams, in the agent and in the server"},
	{"agent/traffic", []string{"fault", "linux/destination", "linux/tproxy"}, "it carries connections, in the agent and to the server, and knows no policy"},
	{"agent/serve", []string{"agent/handshake", "agent/mux"}, "it lets calls in to the agent, and knows none"},
	{"agent/server/keeper", []string{"agent/server", "agent/server/fork", "agent/server/tree"}, "it keeps a command's processes together where there is no cgroup"},
	{"agent/server/tree", nil, "it reads the kernel's list of processes, for the agent"},
	{"agent/server/kept", nil, "it asks the kernel, for the agent and for the server that starts it"},
	{"agent/agenttest", []string{"fault", "sandbox", "agent", "redact", "redact/redacttest", "internal"}, "the suite looks at the agent from outside"},
	{"agent/embedded", nil, "bytes know nothing"},
	{"kernel", []string{"fault", "redact"}, "cells of code know a transport, never a sandbox, an agent or the engine"},
	{"image", []string{"fault", "sandbox", "image/entry", "internal"}, "images know no sandbox"},
	{"image/entry", []string{"fault", "internal/spelling"}, "an entry is the same whatever does its steps"},
	{"image/dockerfile", []string{"fault", "image/oci"}, "a Dockerfile says the same whatever does its steps"},
	{"image/dockerfile/ignore", []string{"fault"}, "the command line leaves out the same files as the server, and has nothing else of builds"},
	{"build", []string{"fault", "sandbox", "access", "agent", "engine", "engine/secrets", "engine/snapshot", "image", "image/entry", "image/dockerfile", "network/permit"}, "builds stand above the engine, which does not know them; they know no coat"},
	{"build/contexts", []string{"fault"}, "what is sent for a build is kept whatever wire it comes by, and whatever is made of it"},
	{"engine", []string{"fault", "engine/defaults", "engine/trust", "engine/retention", "engine/metrics", "engine/hold", "engine/snapshot", "engine/volume", "engine/expiry", "engine/prewarm", "engine/core", "engine/janitor", "sandbox", "access", "runtime", "store", "agent", "image", "network/egress", "network/permit", "network/policy", "network/preset", "internal", "internal/budget", "redact", "redact/redactlog", "engine/check", "engine/process", "engine/pausing", "engine/secrets", "engine/update", "engine/outcomes", "engine/archived", "engine/gates", "engine/backups", "engine/command", "engine/sudo", "engine/rows", "engine/window", "blob"}, "verbs know contracts, never a driver, a database or a coat"},
	{"engine/check", []string{"fault", "sandbox"}, "a field is right or wrong whatever verb it is for"},
	{"engine/expiry", []string{"engine/alarm", "engine/check", "sandbox"}, "which clock has struck, and not how what it asks for is done"},
	{"engine/alarm", []string{"sandbox"}, "it says when, and not what is due then"},
	{"engine/backups", []string{"fault", "sandbox", "runtime", "store", "engine/core", "engine/archived", "engine/snapshot", "engine/volume"}, "disks are kept for a backup whatever verb is at them"},
	{"engine/command", []string{"fault", "sandbox", "agent", "internal/budget", "engine/check", "engine/defaults", "engine/process"}, "a command is right or wrong whoever runs it"},
	{"engine/gates", []string{"fault", "sandbox", "agent", "runtime", "store", "network/egress", "network/policy", "internal/seal", "engine/core", "engine/secrets", "engine/trust"}, "what carries a sandbox's traffic is the same whatever verb brought it up"},
	{"engine/archive", []string{"fault", "sandbox", "engine/check"}, "an archive is the same whatever becomes of its layer"},
	{"engine/archived", []string{"fault", "sandbox", "runtime", "store", "image", "blob", "engine/core", "engine/archive", "engine/snapshot"}, "disks are packed and brought back the same whatever verb it is for"},
	{"engine/sudo", []string{"fault", "agent"}, "what an agent was told of sudo is the same whatever verb asks"},
	{"engine/outcomes", nil, "who waits for a commit need not know what it is of"},
	{"blob/chunks", []string{"fault", "blob"}, "streams are kept once, wherever blobs are: it knows neither what they are nor who has their indexes"},
	{"blob/configured", []string{"fault", "blob", "blob/dir", "blob/s3"}, "where blobs are kept is said the same way in each section of a configuration"},
	{"blob", []string{"fault"}, "bytes by name, wherever they are kept: it knows neither what they are nor whose"},
	{"engine/hold", []string{"fault", "sandbox"}, "what is in use is known by its id alone"},
	{"engine/recent", []string{"fault", "sandbox"}, "what happened is counted by kind, project and cause, whatever verb it was"},
	{"engine/overview", []string{"sandbox", "access", "runtime", "store", "engine/meter", "engine/recent"}, "it puts figures together that others keep, and knows no verb"},
	{"engine/metrics", []string{"fault", "sandbox", "runtime", "engine/recent"}, "figures are counted by the verbs, and know none"},
	{"engine/retention", []string{"sandbox", "store"}, "it deletes events by what the records say of them"},
	{"engine/trust", []string{"fault", "sandbox"}, "certificates are files like others"},
	{"engine/images", []string{"fault", "sandbox", "access", "store", "image", "template", "engine/core", "engine/prewarm"}, "the administration of images stands above the engine, which does not know it; it knows no coat"},
	{"engine/points", []string{"fault", "sandbox", "access", "runtime", "agent/wire", "engine/check"}, "what was on disks stands above the engine, which does not know it; it knows no coat"},
	{"engine/files", []string{"fault", "sandbox", "access", "runtime", "agent", "engine", "engine/check"}, "files stand above the engine, which does not know them; they know no coat"},
	{"engine/tokens", []string{"fault", "sandbox", "access", "engine"}, "what makes tokens of single sandboxes stands above the engine, and knows no signature"},
	{"engine/templates", []string{"fault", "sandbox", "template", "access", "store", "image", "engine", "engine/check", "engine/core", "engine/volume", "image/dockerfile"}, "templates stand above the engine, which does not know them; they know no coat"},
	{"engine/fleet", []string{"fault", "sandbox", "access", "engine"}, "what concerns all projects stands above the engine, which does not know it; it knows no coat"},
	{"engine/meter", []string{"fault", "sandbox", "access", "runtime", "store"}, "what is in use is read of the runtimes, whatever verb made it so"},
	{"engine/traced", []string{"sandbox", "store", "trace"}, "spans are made of what verbs commit, and no verb knows of them"},
	{"engine/events", []string{"fault", "sandbox", "template", "access", "store"}, "what changed is read of records, whatever verb changes them; how they are shown is told to it"},
	{"webhooks", []string{"fault", "sandbox", "access", "store", "engine/events", "network/policy", "internal/seal"}, "webhooks stand on the log of events; how an event is shown is told to them"},
	{"engine/usage", []string{"fault", "sandbox", "access", "store"}, "what is used is added up of records, whatever verb changes them"},
	{"engine/skills", []string{"fault", "sandbox", "skill", "access", "agent", "store", "engine", "engine/core"}, "skills stand above the engine, which does not know them; they know no coat"},
	{"engine/process", []string{"fault", "sandbox", "runtime", "agent", "engine/check"}, "what is on record of a process is the same for every verb; it knows none"},
	{"engine/window", []string{"sandbox", "runtime", "redact", "engine/core", "engine/process", "engine/secrets"}, "which files change is told the same whatever runs meanwhile"},
	{"engine/rows", []string{"sandbox", "store", "engine/process"}, "what events have on record of commands is the same for every verb"},
	{"engine/secrets", []string{"fault", "sandbox", "access", "store", "engine/core", "engine/check", "redact", "redact/redactlog", "internal/seal"}, "what is open is the same for every verb; its own verbs stand above the engine, of which they know a few by name"},
	{"code", []string{"fault", "sandbox", "access", "store", "agent", "kernel", "engine", "engine/process", "engine/window", "engine/check", "internal/budget", "internal/excerpt"}, "contexts of code and shells stand above the engine, which does not know them; they know no coat"},
	{"engine/enginetest", []string{"engine/languages", "fault", "blob/dir", "engine", "engine/files", "engine/templates", "code", "runs", "runtime", "runtime/memory", "store", "store/keyed", "store/sqlstore", "image", "access", "store/quota", "audit", "audit/recorder"}, "it puts an engine together for tests, and knows no coat"},
	{"engine/prewarm", []string{"fault", "sandbox", "runtime", "agent", "image", "engine/core", "engine/metrics", "engine/check"}, "sandboxes made ahead know no verb and no create"},
	{"engine/janitor", []string{"fault", "sandbox", "runtime", "store", "engine/core"}, "what no record owns is the same whatever verb left it"},
	{"engine/snapshot", []string{"fault", "sandbox", "runtime", "store", "image", "engine/core", "engine/archive"}, "snapshots are kept the same whatever verb they are for"},
	{"engine/volume", []string{"fault", "sandbox", "access", "runtime", "store", "engine/core", "engine/check"}, "volumes are kept the same whatever verb they are for; its own verbs stand above the engine, of which they know a few by name"},
	{"engine/update", []string{"fault", "sandbox", "engine/check", "engine/secrets", "engine/volume"}, "what shall change is right or wrong before anything is changed"},
	{"engine/pausing", nil, "a clock of pauses knows no sandbox"},
	{"engine/ports", []string{"fault", "sandbox", "access", "agent", "engine", "engine/check", "store"}, "ports stand above the engine, which does not know them; they know no coat"},
	{"engine/defaults", []string{"fault", "sandbox", "image", "network/permit"}, "what requests get that name nothing is the same for every verb; it knows none"},
	{"engine/core", []string{"fault", "sandbox", "access", "runtime", "store", "image", "engine/hold", "engine/metrics"}, "the parts of the engine share it, and it knows none of them"},
	{"lsp", []string{"fault"}, "the protocol knows neither what runs a server nor where it is"},
	{"engine/languages", []string{"fault", "sandbox", "access", "agent", "engine", "engine/check", "lsp"}, "language servers stand above the engine, which does not know them; they know no coat"},
	{"git", []string{"fault", "sandbox", "access", "agent/wire", "engine", "engine/check", "engine/core"}, "git's commands stand above the engine, which does not know them; they know no coat"},
	{"runs", []string{"fault", "sandbox", "access", "store", "agent", "engine", "engine/update", "engine/process"}, "runs are made of the engine's verbs, and know no coat"},
	{"backup", []string{"fault"}, "the form of a backup knows neither what is in a part nor who restores it"},
	{"network/policy", []string{"fault", "sandbox"}, "what may be reached is decided without asking anybody"},
	{"network/egress", []string{"fault", "sandbox", "runtime", "network/policy", "redact/deep"}, "the gate is given traffic; whose it is it does not know"},
	{"access/project", []string{"fault", "sandbox"}, "nouns know neither who keeps them nor who may change them"},
	{"audit", []string{"fault", "sandbox", "access", "internal/atomicfile", "internal/excerpt"}, "what a row says and how rows are chained is known without a store, so that a file is verified without a server"},
	{"audit/recorder", []string{"fault", "sandbox", "access", "access/project", "audit", "store", "internal/excerpt"}, "it sees records change, and no verb has to know of it"},
	{"store/quota", []string{"fault", "sandbox", "access", "access/project", "store"}, "it sees records alone, and no verb has to know of it"},
	{"projects", []string{"fault", "access", "access/project", "store", "store/quota"}, "who may change projects is the same through every coat; it knows none"},
	{"doctor", []string{"fault", "access"}, "checks are told to it: what they look at it does not know"},
	{"settings", []string{"fault", "sandbox", "access", "store", "internal/spelling"}, "who opens them says how they are put in force; they know no coat"},
	{"network/ask", []string{"fault", "sandbox", "access", "store", "engine", "engine/update", "network/permit"}, "requests are made of the engine's verbs, which does not know them; they know no coat"},
	{"network/permit", []string{"fault", "sandbox", "network/policy", "network/preset"}, "what a caller gets is decided of words and lists; no gate and no sandbox is asked"},
	{"network/preset", []string{"fault", "sandbox", "internal/aptsource"}, "it reads the files that it is given; whose they are, and what becomes of a list, it does not know"},
	{"network/preview", []string{"fault", "sandbox", "access"}, "the proxy is given a way to dial; whose ports they are it does not know"},
	{"api/v1", []string{"fault"}, "the wire must not change because a noun did"},
	{"api/guard", []string{"fault", "sandbox", "access", "api/v1", "internal/ratelimit", "audit", "trace"}, "what stands before every coat knows none"},
	{"api/guard/guardtest", []string{"fault", "access", "api/guard", "audit"}, "the suite holds any coat to its guard, and knows none"},
	{"api/httpapi", []string{"fault", "sandbox", "access", "api/guard", "internal/budget", "internal/spelling", "audit"}, "what JSON coats are made of knows no coat, no type of a wire and no engine"},
	{"api/service", []string{"sandbox", "access", "engine", "engine/process", "engine/snapshot", "engine/volume", "engine/secrets", "engine/update", "engine/ports", "engine/points", "engine/files", "engine/images", "image", "code", "runs", "network/ask", "network/permit", "skill", "engine/skills", "git", "image/dockerfile", "template", "engine/prewarm", "engine/templates", "engine/fleet", "engine/meter", "engine/usage", "engine/events", "webhooks", "settings", "projects", "access/project", "audit", "audit/recorder", "engine/tokens", "access/bearer", "doctor", "engine/overview", "engine/languages", "lsp"}, "what coats ask of the server is said in nouns and in what the verbs take and return"},
	{"api/filelink", []string{"fault", "sandbox", "access"}, "a link names a file; who serves it is another's"},
	{"api/runs", []string{"fault", "internal/mediatype", "sandbox", "access", "runs", "api/v1", "api/filelink"}, "what runs look like is the same through every coat, and no coat's"},
	{"api/admitted", []string{"sandbox", "access", "engine", "code", "runs", "api/service", "internal/admission"}, "what coats begin passes by a gate; it knows no coat, and none knows it"},
	{"api/rest/gitops", []string{"api/httpapi", "api/service", "api/v1", "git"}, "it is a part of REST, which has it"},
	{"api/rest", []string{"api/rest/gitops", "doctor", "internal/mcpsetup", "access/seen", "fault", "internal/mediatype", "sandbox", "access", "access/bearer", "access/session", "store/keyed", "image", "kernel", "engine", "engine/process", "engine/snapshot", "engine/volume", "engine/secrets", "engine/update", "engine/ports", "engine/points", "engine/files", "engine/images", "code", "runs", "api/v1", "api/guard", "api/httpapi", "api/filelink", "api/runs", "api/service", "network/ask", "network/policy", "internal/budget", "skill", "git", "image/dockerfile", "template", "engine/prewarm", "engine/templates", "engine/fleet", "engine/meter", "engine/usage", "engine/events", "webhooks", "settings", "access/project", "projects", "audit", "audit/recorder", "engine/tokens", "engine/overview", "engine/recent"}, "a coat never imports another coat"},
	{"api/mcp", []string{"fault", "sandbox", "access", "access/seen", "runs", "api/v1", "api/guard", "api/filelink", "api/runs", "api/service", "internal/budget", "internal/spelling", "audit", "trace"}, "a coat never imports another coat; its profiles alone know the engine"},
	{"api/mcp/transport", []string{"fault", "sandbox", "access", "internal/budget"}, "the transport carries calls; it knows no tool, no profile and no engine"},
	{"api/mcp/toolset", []string{"fault", "sandbox", "access", "image", "engine", "engine/ports", "git", "api/filelink", "api/service", "api/mcp/transport", "internal/spelling", "access/project"}, "what tools are made of knows no profile"},
	{"api/mcp/batch", []string{"fault", "sandbox", "access", "engine", "runs", "api/runs", "api/mcp/toolset", "api/mcp/transport"}, "runs are the same in every profile that has them"},
	{"api/mcp/profile/sandpit", []string{"fault", "sandbox", "access", "image", "kernel", "engine", "engine/process", "engine/snapshot", "engine/volume", "engine/secrets", "engine/update", "engine/ports", "engine/files", "engine/images", "network/ask", "code", "runs", "api/filelink", "api/runs", "api/service", "api/mcp/batch", "api/mcp/toolset", "api/mcp/transport", "internal/spelling", "skill", "git", "template", "engine/templates"}, "a profile never imports another profile"},
	{"api/mcp/profile/orkestr", []string{"fault", "sandbox", "access", "image", "api/mcp/toolset", "api/orkestrterms", "engine", "access/project"}, "a profile never imports another profile"},
	{"api/daytona", []string{"access", "api/daytonaterms", "api/filelink", "api/guard", "api/httpapi", "api/service", "api/v1", "code", "engine", "engine/events", "engine/languages", "engine/meter", "engine/images", "engine/ports", "engine/prewarm", "engine/process", "engine/secrets", "engine/templates", "engine/update", "engine/volume", "fault", "git", "image", "image/dockerfile", "internal/budget", "kernel", "sandbox", "template"}, "a coat never imports another coat"},
	{"api/daytona/release", nil, "which version a client has is read of its request alone"},
	{"api/daytona/toolbox", []string{"api/daytona/lacking", "api/daytona/problem", "api/daytona/release", "api/daytona/wire", "api/filelink", "api/guard", "api/httpapi", "api/service", "code", "engine", "engine/languages", "engine/process", "engine/update", "fault", "git", "kernel", "lsp", "sandbox"}, "what is asked of the inside of a sandbox knows nothing of the plane that manages them"},
	{"api/daytona/wire", nil, "the objects of a wire are what its clients know, whatever becomes of our nouns"},
	{"api/daytona/lacking", []string{"api/guard", "api/httpapi", "fault"}, "what is refused knows nothing of what is served"},
	{"api/daytona/objects", []string{"access", "api/guard", "api/v1", "audit", "build/contexts", "fault", "sandbox"}, "the object store speaks S3, and knows no operation of the other planes"},
	{"api/daytona/problem", []string{"api/daytona/wire", "api/guard", "api/v1", "fault", "sandbox"}, "how errors are said is the same on both planes"},
	{"api/daytonaterms", []string{"fault", "sandbox", "engine"}, "what Daytona's terms are here is the same for each of its wires: it knows no coat"},
	{"api/mcp/profile/daytona", []string{"fault", "sandbox", "image", "image/dockerfile", "engine", "engine/volume", "git", "api/daytonaterms", "api/filelink", "api/mcp/toolset"}, "a profile never imports another profile"},
	{"api/gateway", []string{"api/guard", "api/httpapi", "api/service", "api/v1", "audit", "audit/recorder", "engine", "engine/process", "engine/update", "fault", "image", "internal/budget", "sandbox", "skill"}, "a coat never imports another coat"},
	{"api/orkestrterms", []string{"access", "api/service", "engine", "engine/volume", "fault", "sandbox"}, "what Orkestr's terms are here is the same for its SDK and for its tools: it knows no coat"},
	{"api/orkestr", []string{"access", "access/project", "api/filelink", "api/guard", "api/httpapi", "api/orkestrterms", "api/service", "api/v1", "code", "engine", "engine/events", "engine/meter", "engine/ports", "engine/process", "engine/snapshot", "engine/update", "engine/volume", "fault", "internal/budget", "kernel", "sandbox", "template", "webhooks"}, "a coat never imports another coat"},
	{"api/mcp/profile/sandboxd", []string{"fault", "sandbox", "engine", "engine/update", "runs", "api/mcp/toolset", "api/mcp/batch"}, "a profile never imports another profile"},
	{"client", []string{"fault", "api/v1"}, "the SDK must not drag the server in"},
	{"internal/printable", nil, "a name is the same wherever it is told"},
	{"internal/ratelimit", nil, "it counts; what is counted it does not know"},
	{"internal/admission", []string{"fault"}, "it gives places out, and says why there is none; what is begun it does not know"},
	{"internal/budget", []string{"fault"}, "it counts bytes, and says why it has no more"},
	{"internal/certfile", []string{"fault"}, "it reads two files, and says what is wrong with them"},
	{"internal/localca", []string{"fault", "internal/atomicfile"}, "it makes certificates, and knows no server"},
	{"internal", []string{"internal"}, "helpers know nothing of sandboxes"},
	{"internal/archtest", nil, "it looks at the tree, not at code"},
	{"cmd/sandpit-agent", []string{"agent/boot/plain", "agent/server", "agent/sudo", "agent/sudo/program", "runtime/native/boot", "runtime/native/inside"}, "the agent is small and knows nothing of the server"},
	{"deploy/serverimage", []string{"image/oci"}, "it puts a program into an archive, and knows nothing of what that does"},
	{"cmd/sandpit", []string{"client", "api/v1", "fault", "daemon", "backup", "internal", "internal/localca", "sandbox", "image/dockerfile/ignore", "audit"}, "the CLI is a client; only serve, doctor and restore reach the daemon, which they need no server for"},
	{"bench", []string{"client", "api/v1", "fault", "internal", "image", "agent/embedded", "test/browser", "test/browser/cost"}, "the benchmark measures through the public API, and pages in a browser; the nodes of its cluster get the agent from it, not from a registry"},
	{"bench/cmd/sandpit-bench", []string{"fault", "bench"}, "it asks the benchmark, and prints"},
	{"bench/tally", nil, "it counts system calls and knows nothing of whose they are"},
	{"bench/plot", nil, "it draws numbers and knows nothing of what they are"},
	{"test/mcp/fixture", []string{"fault", "access", "engine", "image", "skill", "runs", "api/guard", "api/mcp", "api/service"}, "it is the coat behind its guard, with what a suite asks for, and no sandboxes"},
	{"console", []string{"fault"}, "it serves files: its pages use REST as every client does"},
	{"test/browser", nil, "it has a browser for whoever tests pages: it knows no server"},
	{"test/browser/cost", []string{"test/browser"}, "it measures pages in a browser; of a server it knows the address"},
	{"test/browser/walk", []string{"test/browser"}, "it drives a browser by what a person writes, and knows no server"},
	{"test", []string{"client", "api/v1", "fault", "internal", "image"}, "end to end means through the real binaries"},
}

// exceptions may import anything of ours; the list is short on purpose.
var exceptions = []string{"daemon"}

func TestImportsRunOneWay(t *testing.T) {
	for path, p := range packages(t) {
		rel := strings.TrimPrefix(path, module+"/")
		if slices.Contains(exceptions, rel) {
			continue
		}
		r, ok := ruleOf(rel)
		if !ok {
			t.Errorf("package %s has no rule: add one to internal/archtest, with its reason", rel)
			continue
		}
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, module+"/")
			if !ours || allowed(rel, r, to) {
				continue
			}
			t.Errorf("%s imports %s: %s", rel, to, r.reason)
		}
	}
}

// allowed: what a rule names, and what lies below it unless that has a rule of
// its own; and packages of one's own folder.
func allowed(from string, r rule, to string) bool {
	if below(to, r.path) && below(from, r.path) {
		return true
	}
	for _, may := range r.may {
		if to == may {
			return true
		}
		if below(to, may) {
			if own, _ := ruleOf(to); own.path == may {
				return true
			}
		}
	}
	return false
}

func ruleOf(rel string) (rule, bool) {
	var best rule
	found := false
	for _, r := range rules {
		if below(rel, r.path) && len(r.path) >= len(best.path) {
			best, found = r, true
		}
	}
	return best, found
}

func below(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

func TestEveryRuleNamesAPackageThatExists(t *testing.T) {
	all := packages(t)
	for _, r := range rules {
		ok := false
		for path := range all {
			ok = ok || below(strings.TrimPrefix(path, module+"/"), r.path)
		}
		if !ok && r.path != "test" {
			t.Errorf("the rule for %s covers no package: remove it", r.path)
		}
	}
}

// beneath are the packages below the verbs, of which no coat imports one or a part of one: a
// coat's words are those of the nouns and of the verbs.
var beneath = []string{"agent", "store", "kernel", "runtime"}

// beneathStill are the imports of that kind that there are still. The list only shrinks.
var beneathStill = map[string][]string{
	"api/rest":                {"kernel", "store/keyed"}, // values of a cell; idempotency keys, which travel through the store
	"api/rest/idempotency":    {"store/keyed"},
	"api/rest/tokens":         {"store/keyed"},
	"api/mcp/profile/sandpit": {"kernel"}, // values of a cell
	"api/daytona/toolbox":     {"kernel"}, // likewise
	"api/orkestr":             {"kernel"}, // likewise
}

func TestCoatsKnowNounsAndVerbs(t *testing.T) {
	all := packages(t)
	for path, p := range all {
		rel := strings.TrimPrefix(path, module+"/")
		if !below(rel, "api") {
			continue
		}
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, module+"/")
			if ours && slices.ContainsFunc(beneath, func(dir string) bool { return below(to, dir) }) && !slices.Contains(beneathStill[rel], to) {
				t.Errorf("%s imports %s: a coat takes its words from sandbox and engine, and its interfaces from api/service", rel, to)
			}
		}
	}
	for rel, imports := range beneathStill {
		for _, to := range imports {
			if !slices.Contains(all[module+"/"+rel].Imports, module+"/"+to) {
				t.Errorf("%s imports %s no more: remove it from beneathStill", rel, to)
			}
		}
	}
}

// confined are dependencies that stay in one place, so that another can take theirs.
var confined = map[string][]string{
	"database/sql":                                              {"store/sqlstore"},
	"modernc.org/sqlite":                                        {"store/sqlstore"},
	"github.com/pressly/goose/v3":                               {"store/sqlstore"},
	"github.com/modelcontextprotocol/go-sdk/mcp":                {"api/mcp", "cmd/sandpit", "test/mcp", "test/script"},
	"github.com/spf13/cobra":                                    {"cmd/sandpit", "bench/cmd/sandpit-bench"},
	"github.com/moby/profiles/seccomp":                          {"linux/seccomp"},
	"github.com/cilium/ebpf":                                    {"linux/steer"},
	"github.com/cilium/ebpf/asm":                                {"linux/steer"},
	"github.com/cilium/ebpf/link":                               {"linux/steer"},
	"github.com/moby/buildkit/frontend/dockerfile/parser":       {"image/dockerfile"},
	"github.com/moby/buildkit/frontend/dockerfile/instructions": {"image/dockerfile"},
	"github.com/moby/buildkit/frontend/dockerfile/shell":        {"image/dockerfile"},
	"github.com/moby/patternmatcher":                            {"image/dockerfile"},
	"k8s.io/client-go/rest":                                     {"runtime/kubernetes/kubeapi", "internal/cluster/clustertest"},
	"k8s.io/client-go/tools/clientcmd":                          {"runtime/kubernetes/kubeapi", "internal/cluster/clustertest"},
	"github.com/chromedp/chromedp":                              {"test/browser"},
	"go.yaml.in/yaml/v3":                                        {"cmd/sandpit", "daemon", "skill", "image/entry"},
	"github.com/go-jose/go-jose/v4":                             {"access/issuer"},
	"github.com/go-jose/go-jose/v4/jwt":                         {"access/issuer"},
	"google.golang.org/protobuf/encoding/protowire":             {"trace/otlp"},
	"github.com/BurntSushi/toml":                                {"internal/mcpsetup"},
}

func TestDependenciesStayInTheirPlace(t *testing.T) {
	for path, p := range packages(t) {
		rel := strings.TrimPrefix(path, module+"/")
		for _, imp := range p.Imports {
			places, ok := confined[imp]
			if ok && !slices.ContainsFunc(places, func(place string) bool { return below(rel, place) }) {
				t.Errorf("%s imports %s, which belongs to %s alone", rel, imp, strings.Join(places, " and "))
			}
			if imp == "testing" && !strings.HasSuffix(rel, "test") {
				t.Errorf("%s imports testing: only packages whose name ends in test may", rel)
			}
		}
	}
}

func TestEveryPackageHasOneDoc(t *testing.T) {
	for path, p := range packages(t) {
		if len(p.GoFiles) == 0 {
			continue
		}
		if p.Doc == "" {
			t.Errorf("%s has no package doc: say what it is and what it must not know", path)
		}
		var with []string
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if f.Doc != nil {
				with = append(with, name)
			}
		}
		if len(with) > 1 {
			t.Errorf("%s has package docs in %s: one is enough", path, strings.Join(with, " and "))
		}
	}
}

// walk visits the repository's own files of an ending.
func walk(t *testing.T, ending string, visit func(path string, text string)) {
	t.Helper()
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || path == "bin"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ending):
			return nil
		}
		b, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		visit(path, string(b))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEveryFileSaysWhoseItIs(t *testing.T) {
	const head = "// Copyright 2026 The sandpit authors\n// SPDX-License-Identifier: Apache-2.0\n"
	walk(t, ".go", func(path, text string) {
		if !strings.HasPrefix(text, head) {
			t.Errorf("%s does not begin with the two lines of copyright and licence", path)
		}
	})
}

func TestNoFileOfCodeIsLong(t *testing.T) {
	const most = 500
	walk(t, ".go", func(path, text string) {
		if n := strings.Count(text, "\n"); n > most && !strings.HasSuffix(path, "_test.go") {
			t.Errorf("%s has %d lines, at most %d: a file holds one noun", path, n, most)
		}
	})
}

func TestOneFileNamesRuntimes(t *testing.T) {
	const list = "daemon/runtimes.go"
	found := false
	walk(t, ".go", func(path, text string) {
		rel, ours := "", false
		for _, dir := range []string{"daemon/", "cmd/sandpit/"} {
			if i := strings.LastIndex("/"+path, "/"+dir); i >= 0 {
				rel, ours = path[i:], true
			}
		}
		if !ours || strings.HasSuffix(path, "_test.go") || !strings.Contains(text, `"sandpit.dev/runtime/`) {
			return
		}
		if found = found || rel == list; rel != list {
			t.Errorf("%s imports a runtime: only the list in %s does, see runtime.Kind", rel, list)
		}
	})
	if !found {
		t.Errorf("%s imports no runtime: this test looks in the wrong place", list)
	}
}

func TestNothingRunsBeforeMain(t *testing.T) {
	walk(t, ".go", func(path, text string) {
		// Only before main is the main goroutine on the first thread for certain, and
		// process 1 hears of orphans there alone.
		if strings.HasSuffix(path, "cmd/sandpit-agent/main.go") {
			return
		}
		if strings.Contains(text, "\nfunc init() {") {
			t.Errorf("%s has an init function: wiring is visible, in daemon", path)
		}
	})
}
