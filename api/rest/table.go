// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"reflect"
	"slices"

	"sandpit.dev/access"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/admin"
	"sandpit.dev/api/rest/events"
	"sandpit.dev/api/rest/files"
	"sandpit.dev/api/rest/gateway"
	"sandpit.dev/api/rest/idempotency"
	"sandpit.dev/api/rest/images"
	"sandpit.dev/api/rest/tokens"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/sandbox"
	"sandpit.dev/store/keyed"
)

// operations is the table: all that /v1 can do. Parts of it are packages below this one.
func (a *API) operations() []httpapi.Operation {
	return slices.Concat(
		a.sandboxOperations(),
		a.filesAPI().Operations(),
		a.tokensAPI().Operations(),
		a.sessions.Operations(),
		a.clients.Operations(),
		a.previewLinkOperations(),
		(&images.API{Images: a.Images, Keeper: a.Keeper, Dockerfiles: a.Dockerfiles, MaxFile: a.maxFile}).Operations(),
		(&gateway.API{Sandboxes: a.Sandboxes, Images: a.Images, Server: a.Server, Keeper: a.Keeper, Projects: a.Projects, Usage: a.Usage, Audit: a.Audit}).Operations(),
		(&admin.API{Server: a.Server, Keeper: a.Keeper, Projects: a.Projects, Settings: a.Settings, Fleet: a.Fleet, Usage: a.Usage, Stats: a.Stats, Doctor: a.Doctor, Overview: a.Overview, Audit: a.Audit, Backups: a.backups}).Operations(),
		(&events.API{Events: a.Events, Webhooks: a.Webhooks}).Operations(),
		a.serverOperations(),
		a.git(),
	)
}

func (a *API) tokensAPI() *tokens.API {
	return &tokens.API{Tokens: a.tokens, Sandboxes: a.Services.Tokens, Projects: a.Projects}
}

func (a *API) filesAPI() *files.API {
	return &files.API{Files: a.Files, MaxFile: a.maxFile, Links: a.links, Sandboxes: a.Sandboxes, Points: a.Points}
}

// sandboxOperations are those on sandboxes and on what belongs to one or is made for one.
func (a *API) sandboxOperations() []httpapi.Operation {
	const anyBytes = "application/octet-stream"
	return []httpapi.Operation{
		idempotency.Op("createSandbox", "POST /sandboxes", "Create a sandbox, or get the one that has the key.", http.StatusCreated, a.createSandbox).
			Also(http.StatusOK, "", reflect.TypeFor[v1.Sandbox](), "The key is known: that sandbox, started if it was stopped.").
			Example(v1.CreateSandbox{Image: new("python"), MemoryMB: new(512), IdleTimeoutSeconds: new(int64(1800)), Key: new("agent-session-abc")}).
			Extend(idempotency.Making(keyed.Sandbox)),
		idempotency.Op("listSandboxes", "GET /sandboxes", "List sandboxes, newest first.", http.StatusOK, a.listSandboxes),
		idempotency.Op("getSandbox", "GET /sandboxes/{id}", "Get a sandbox.", http.StatusOK, a.getSandbox),
		idempotency.Op("updateSandbox", "PATCH /sandboxes/{id}", "Change a sandbox.", http.StatusOK, a.updateSandbox).
			Example(v1.UpdateSandbox{IdleTimeoutSeconds: new(int64(3600))}),
		idempotency.Op("deleteSandbox", "DELETE /sandboxes/{id}", "Delete a sandbox and all that is in it. Its snapshots that have a name stay.", http.StatusNoContent, a.deleteSandbox),
		idempotency.Op("startSandbox", "POST /sandboxes/{id}/start", "Start a stopped sandbox. One that runs is no error.", http.StatusOK, a.becoming(a.Sandboxes.Start, sandbox.EventStarted)).
			Extend(idempotency.Making(keyed.Change)),
		idempotency.Op("stopSandbox", "POST /sandboxes/{id}/stop", "Stop a sandbox: its processes end, its files stay.", http.StatusOK, a.stopSandbox).
			Extend(idempotency.Making(keyed.Change)),
		idempotency.Op("restartSandbox", "POST /sandboxes/{id}/restart", "Stop a sandbox and start it: its processes end, its files stay. One that is stopped or paused runs after.", http.StatusOK, a.restartSandbox).
			Extend(idempotency.Making(keyed.Change)),
		idempotency.Op("resetSandbox", "POST /sandboxes/{id}/reset", "Give a sandbox an empty disk: its processes end and its files are lost, its id and key stay.", http.StatusOK, a.becoming(a.Sandboxes.Reset, sandbox.EventRestored)).
			Extend(idempotency.Making(keyed.Change)),
		idempotency.Op("pauseSandbox", "POST /sandboxes/{id}/pause", "Freeze a sandbox's processes with all that they have in memory. One that is paused is no error.", http.StatusOK, a.becoming(a.Sandboxes.Pause, sandbox.EventPaused)).
			Extend(idempotency.Making(keyed.Change)),
		idempotency.Op("resumeSandbox", "POST /sandboxes/{id}/resume", "Let the processes of a paused sandbox go on where they were. One that runs is no error.", http.StatusOK, a.becoming(a.Sandboxes.Resume, sandbox.EventResumed)).
			Extend(idempotency.Making(keyed.Change)),
		idempotency.Op("archiveSandbox", "POST /sandboxes/{id}/archive", "Pack the disk of a stopped sandbox, and keep it elsewhere until a start brings it back. One that is archived is no error. It has nothing to do with GET and PUT of this path, which move files.", http.StatusOK, a.becoming(a.Sandboxes.Archive, sandbox.EventArchived)).
			Extend(idempotency.Making(keyed.Change)),
		idempotency.Op("rollbackSandbox", "POST /sandboxes/{id}/rollback", "Give a sandbox the disk of a snapshot: its processes end, its id and key stay.", http.StatusOK, a.rollbackSandbox).
			Example(v1.RollbackSandbox{To: "base"}).
			Extend(idempotency.Making(keyed.Change)),
		idempotency.Op("forkSandbox", "POST /sandboxes/{id}/fork", "Make running copies of a sandbox, as it is now or as it was: all of them or none.", http.StatusCreated, a.forkSandbox).
			Example(v1.ForkSandbox{Count: new(2)}).
			Extend(idempotency.Making(keyed.Sandbox)),
		idempotency.Op("promoteSandbox", "POST /sandboxes/{id}/promote", "Have a fork take the place of the sandbox that it was forked from, in one step: its key, labels, clocks, volumes and snapshots are the fork's from then on, what it was is one snapshot more, and it is deleted. Who calls by the key is never without a sandbox.", http.StatusOK, a.promoteSandbox).
			Example(v1.PromoteSandbox{Name: new("before")}).
			Extend(idempotency.Making(keyed.Change)),
		idempotency.Op("diffSandbox", "GET /sandboxes/{id}/diff", "What changed of a sandbox's disk between two points in time.", http.StatusOK, a.diffSandbox),
		idempotency.Op("listActivity", "GET /sandboxes/{id}/activity", "What happened to a sandbox, newest first.", http.StatusOK, a.listActivity),

		idempotency.Op("createSnapshot", "POST /sandboxes/{id}/snapshots", "Keep a sandbox's disk as it is, while it runs or not.", http.StatusCreated, a.createSnapshot).
			Example(v1.CreateSnapshot{Name: new("before-upgrade")}).
			Extend(idempotency.Making(keyed.Snapshot)),
		idempotency.Op("listSnapshotsOf", "GET /sandboxes/{id}/snapshots", "List a sandbox's snapshots, newest first.", http.StatusOK, a.listSnapshotsOf),
		idempotency.Op("getSnapshotOf", "GET /sandboxes/{id}/snapshots/{snapshot}", "Get a snapshot of a sandbox.", http.StatusOK, a.getSnapshotOf),
		idempotency.Op("deleteSnapshotOf", "DELETE /sandboxes/{id}/snapshots/{snapshot}", "Delete a snapshot of a sandbox. What was made from it stays.", http.StatusNoContent, a.deleteSnapshotOf),
		idempotency.Op("archiveSnapshotOf", "POST /sandboxes/{id}/snapshots/{snapshot}/archive", "Pack a snapshot that is not needed for a while, and keep it elsewhere until it is used. One that is archived is no error.", http.StatusOK, a.archiveSnapshotOf).
			Extend(idempotency.Keyless("twice is as once")),
		idempotency.Op("listSnapshots", "GET /snapshots", "List the project's snapshots, newest first.", http.StatusOK, a.listSnapshots),
		idempotency.Op("getSnapshot", "GET /snapshots/{snapshot}", "Get a snapshot.", http.StatusOK, a.getSnapshot),
		idempotency.Op("deleteSnapshot", "DELETE /snapshots/{snapshot}", "Delete a snapshot. What was made from it stays.", http.StatusNoContent, a.deleteSnapshot),
		idempotency.Op("archiveSnapshot", "POST /snapshots/{snapshot}/archive", "Pack a snapshot that is not needed for a while, and keep it elsewhere until it is used. One that is archived is no error. It has nothing to do with GET of this path, which exports one.", http.StatusOK, a.archiveSnapshot).
			Extend(idempotency.Keyless("twice is as once")),
		idempotency.Raw("exportSnapshot", "GET /snapshots/{snapshot}/archive", "Get a snapshot as an archive, for this server or another. One that breaks off ends without its last chunk.", http.StatusOK, a.exportSnapshot).
			Media("", v1.SnapshotType),
		idempotency.Op("importSnapshot", "POST /snapshots/import", "Make a snapshot from an archive, which is the raw body. It belongs to no sandbox.", http.StatusCreated, a.importSnapshot).
			Media(v1.SnapshotType, "").
			Extend(idempotency.Keying{Scope: access.SandboxesWrite, Makes: []keyed.Kind{keyed.Snapshot}, Unread: true}),

		idempotency.Op("createVolume", "POST /volumes", "Make an empty volume.", http.StatusCreated, a.createVolume).
			Example(v1.CreateVolume{Name: "datasets"}).
			Extend(idempotency.Making(keyed.Volume)),
		idempotency.Op("listVolumes", "GET /volumes", "List the project's volumes, with what they hold and who mounts them.", http.StatusOK, a.listVolumes),
		idempotency.Op("getVolume", "GET /volumes/{volume}", "Get a volume.", http.StatusOK, a.getVolume),
		idempotency.Op("updateVolume", "PATCH /volumes/{volume}", "Change a volume's lifetime, which is counted from its creation.", http.StatusOK, a.updateVolume).
			Example(v1.UpdateVolume{LifetimeSeconds: new(int64(86400))}),
		idempotency.Op("deleteVolume", "DELETE /volumes/{volume}", "Delete a volume with all that is in it. It is refused while a sandbox mounts it.", http.StatusNoContent, a.deleteVolume),

		idempotency.Op("createTemplate", "POST /templates", "Add a version of a template: an image, a snapshot or steps, with defaults for the sandboxes that are made of it. The same as the newest of its name again is that one (200). With steps: 202, and they are done in the background; getTemplate shows how far they are, and what a step that failed wrote.", http.StatusCreated, a.createTemplate).
			Also(http.StatusOK, "", reflect.TypeFor[v1.Template](), "The newest version of the name is the same.").
			Also(http.StatusAccepted, "", reflect.TypeFor[v1.Template](), "Its steps are being done.").
			Example(v1.CreateTemplate{Name: "web", Image: new("python"), Start: new("python3 -m http.server 8000"), Ready: &v1.ReadyProbe{Port: 8000}}).
			Extend(idempotency.Keyless("the same template again is that which is there")),
		idempotency.Op("listTemplates", "GET /templates", "List the versions of the project's templates, by name and newest first, then those of the server.", http.StatusOK, a.listTemplates),
		idempotency.Op("getTemplate", "GET /templates/{template}", "Get a version of a template.", http.StatusOK, a.getTemplate),
		idempotency.Raw("templateLog", "GET /templates/{template}/log", "Get what the build of a template's disk or image has written, as text. Needs the scope admin.", http.StatusOK, a.templateLog).
			Media("", "text/plain"),
		idempotency.Op("updateTemplate", "PATCH /templates/{template}", "Make a template the default of the project or the server, or not any more; or have nothing be made of it for a time. Else no version changes.", http.StatusOK, a.updateTemplate).
			Example(v1.UpdateTemplate{Default: new(true)}),
		idempotency.Op("deleteTemplate", "DELETE /templates/{template}", "Delete a version of a template, or by a name all of them. Sandboxes that were made of it stay, with what it starts in them.", http.StatusNoContent, a.deleteTemplate),
		idempotency.Op("createSkill", "POST /skills", "Make a skill of the text of its SKILL.md. The same one again is that which is there (200).", http.StatusCreated, a.createSkill).
			Also(http.StatusOK, "", reflect.TypeFor[v1.Skill](), "It is there already.").
			Example(v1.CreateSkill{Name: new("release-notes"), Description: new("Writes release notes. Use when a version is about to be published."), SkillMDContent: "# Release notes\n\n1. Read the log since the last tag.\n"}).
			Extend(idempotency.Keyless("the same skill again is that which is there")),
		idempotency.Op("uploadSkill", "POST /skills/upload", "Keep a skill that comes as the raw body: a ZIP archive (.zip, .skill) with SKILL.md at its root or in its only directory, or a SKILL.md alone; or as the part file of a form. At most 10 MiB and 100 files. The same one again is that which is there (200).", http.StatusCreated, a.uploadSkill).
			Media(anyBytes, "").FormPart("file").
			Also(http.StatusOK, "", reflect.TypeFor[v1.Skill](), "It is there already.").
			Extend(idempotency.Keyless("the same skill again is that which is there")),
		idempotency.Op("listSkills", "GET /skills", "List the project's skills, without the texts of their SKILL.md.", http.StatusOK, a.listSkills),
		idempotency.Op("getSkill", "GET /skills/{skill}", "Get a skill, with the text of its SKILL.md.", http.StatusOK, a.getSkill),
		idempotency.Op("replaceSkill", "PUT /skills/{skill}", "Put another package in a skill's place, as for uploadSkill. Where it is installed it stays as it is until it is installed again.", http.StatusOK, a.replaceSkill).
			Media(anyBytes, "").FormPart("file"),
		idempotency.Op("deleteSkill", "DELETE /skills/{skill}", "Delete a skill from the project. Where it is installed it stays.", http.StatusNoContent, a.deleteSkill),
		idempotency.Raw("skillPackage", "GET /skills/{skill}/package", "Get a skill as a ZIP archive, with one directory of its name.", http.StatusOK, a.skillPackage).
			Media("", v1.SkillType),
		idempotency.Op("installSkills", "POST /sandboxes/{id}/skills", "Install skills into a sandbox, each in /workspace/skills and its name. What is there as it is to be stays.", http.StatusOK, a.installSkills).
			Example(v1.InstallSkills{SkillIDs: []string{"data-analyzer"}}).
			Extend(idempotency.Keyless("twice is as once")),

		idempotency.Op("setSecret", "PUT /secrets/{secret}", "Set a secret of the project, for all its sandboxes. Commands and connections that begin from then on have it. Needs the scope admin.", http.StatusOK, a.setSecret).
			Example(v1.SetSecret{Value: "a-key", Hosts: []string{"api.example.org"}}),
		idempotency.Op("listSecrets", "GET /secrets", "List the project's secrets, without their values.", http.StatusOK, a.listSecrets),
		idempotency.Op("getSecret", "GET /secrets/{secret}", "Get a secret of the project, without its value.", http.StatusOK, a.getSecret),
		idempotency.Op("deleteSecret", "DELETE /secrets/{secret}", "Delete a secret of the project. What runs keeps what it was given. Needs the scope admin.", http.StatusNoContent, a.deleteSecret),
		idempotency.Op("setSecretOf", "PUT /sandboxes/{id}/secrets/{secret}", "Set a secret of a sandbox's own, which goes before the project's of the same name.", http.StatusOK, a.setSecretOf).
			Example(v1.SetSecret{Value: "a-password"}),
		idempotency.Op("listSecretsOf", "GET /sandboxes/{id}/secrets", "List the secrets that hold for a sandbox, its own and its project's, without their values.", http.StatusOK, a.listSecretsOf),
		idempotency.Op("getSecretOf", "GET /sandboxes/{id}/secrets/{secret}", "Get the secret of a name that holds for a sandbox, without its value.", http.StatusOK, a.getSecretOf),
		idempotency.Op("deleteSecretOf", "DELETE /sandboxes/{id}/secrets/{secret}", "Delete a secret of a sandbox's own.", http.StatusNoContent, a.deleteSecretOf),

		idempotency.Raw("createExec", "POST /exec", "Run a command in a sandbox that is made for it, or that has the key: createSandbox and exec in one request. A command that is wrong makes no sandbox, and one that cannot begin in a new one without a key takes that with it. Streamed as exec, with the sandbox in the first event and CreateExecOutcome in the last.", http.StatusOK, a.createExec).
			Out(reflect.TypeFor[v1.CreateExecResult]()).MaxBody(maxBigJSON).
			Also(http.StatusOK, "text/event-stream", nil, "").Events(commandEventTypes(reflect.TypeFor[v1.CreateExecOutcome]())).
			Frames(v1.FramesType).
			Also(http.StatusAccepted, "", reflect.TypeFor[v1.CreateExecResult](), "It still runs after wait_seconds.").
			Example(v1.CreateExec{Exec: v1.Exec{Command: new("python main.py")}, Sandbox: v1.CreateSandbox{Key: new("agent-session-abc")}}).
			Extend(idempotency.Running(keyed.Sandbox)),
		idempotency.Raw("exec", "POST /sandboxes/{id}/exec", "Run a command. With Accept: text/event-stream its output is streamed: events stdout and stderr (Output), then exit (ExecOutcome) or error (Problem); with application/vnd.sandpit.frames the same comes as binary frames, and with its parameter output=all without a bound: the command waits for a slow reader.", http.StatusOK, a.exec).
			Out(reflect.TypeFor[v1.ExecResult]()).MaxBody(maxBigJSON).
			Also(http.StatusOK, "text/event-stream", nil, "").Events(commandEventTypes(reflect.TypeFor[v1.ExecOutcome]())).
			Frames(v1.FramesType).
			Also(http.StatusAccepted, "", reflect.TypeFor[v1.ExecResult](), "It still runs after wait_seconds.").
			Example(v1.Exec{Command: new("python main.py"), TimeoutSeconds: new(300.0)}).
			Extend(idempotency.Running().Following()),
		idempotency.Op("startProcess", "POST /sandboxes/{id}/processes", "Start a process and do not wait for it: it goes on whoever goes away.", http.StatusCreated, a.startProcess).MaxBody(maxBigJSON).
			Example(v1.StartProcess{Command: new("npm run dev"), StreamStdin: new(false)}).
			Extend(idempotency.Making(keyed.Process)),
		idempotency.Op("listProcesses", "GET /sandboxes/{id}/processes", "List a sandbox's processes.", http.StatusOK, a.listProcesses),
		idempotency.Op("getProcess", "GET /sandboxes/{id}/processes/{pid}", "Get a process.", http.StatusOK, a.getProcess),
		idempotency.Op("waitProcess", "GET /sandboxes/{id}/processes/{pid}/wait", "Wait for a process's end.", http.StatusOK, a.waitProcess).
			Also(http.StatusAccepted, "", reflect.TypeFor[v1.Process](), "It still runs after timeout."),
		idempotency.Raw("followProcess", "GET /sandboxes/{id}/processes/{pid}/output", "Follow a process's output from any frame on: server-sent events stdout and stderr (Output), gap (OutputGap), then exit (Process), end (OutputEnd) or error (Problem); or, where the request asks for one, a WebSocket: see ProcessControl.", http.StatusOK, a.followProcess).
			Media("", "text/event-stream").Events(followEventTypes()).
			Also(http.StatusSwitchingProtocols, "", nil, "The WebSocket that was asked for."),
		idempotency.Raw("processLogs", "GET /sandboxes/{id}/processes/{pid}/logs", "Read a process's output as plain bytes.", http.StatusOK, a.processLogs).Media("", "text/plain"),
		idempotency.Op("signalProcess", "POST /sandboxes/{id}/processes/{pid}/signal", "Send a signal to a process.", http.StatusNoContent, a.signalProcess).
			Example(v1.SignalProcess{Signal: "SIGINT"}).
			Extend(idempotency.Keyless("it begins nothing")),
		idempotency.Raw("writeStdin", "POST /sandboxes/{id}/processes/{pid}/stdin", "Write the raw body, of at most 1 MiB, to the standard input of a process that was started with stream_stdin or tty.", http.StatusOK, a.writeStdin).
			Media(anyBytes, "").Out(reflect.TypeFor[v1.ProcessInput]()).
			Also(http.StatusAccepted, "", reflect.TypeFor[v1.ProcessInput](), "It did not take all of it: it does not read.").
			Extend(idempotency.Keyless("its offset has it taken once")),
		idempotency.Op("resizeProcess", "POST /sandboxes/{id}/processes/{pid}/resize", "Tell a process that its terminal has another size.", http.StatusNoContent, a.resizeProcess).
			Example(v1.ResizeProcess{Cols: 120, Rows: 40}).
			Extend(idempotency.Keyless("twice is as once")),
		idempotency.Op("killProcessByPost", "POST /sandboxes/{id}/processes/{pid}/kill", "The same as DELETE.", http.StatusNoContent, a.killProcess).
			Extend(idempotency.Keyless("twice is as once")),
		idempotency.Op("killProcess", "DELETE /sandboxes/{id}/processes/{pid}", "Kill a command and all that it started.", http.StatusNoContent, a.killProcess),
		idempotency.Op("killProcesses", "DELETE /sandboxes/{id}/processes", "Kill all that runs in a sandbox, also what commands that have ended left running. Files stay. It works where no more process can be started.", http.StatusNoContent, a.killProcesses),
		idempotency.Raw("openTerminal", "GET /sandboxes/{id}/terminal", "Open a terminal: a WebSocket whose binary messages are its bytes, both ways, and whose text messages are TerminalControl.", http.StatusSwitchingProtocols, a.openTerminal),

		idempotency.Op("listTerminals", "GET /sandboxes/{id}/terminals", "List the terminals of a sandbox whose command runs. They are processes, and among those when it has ended.", http.StatusOK, a.listTerminals),
		idempotency.Raw("attachTerminal", "GET /sandboxes/{id}/terminals/{pid}", "Join a terminal that was opened with stays, or started as a process with tty: a WebSocket as that of openTerminal, which first gets what the terminal has shown last. Many clients may join; each of them types and resizes. Whoever goes leaves the terminal as it is.", http.StatusSwitchingProtocols, a.attachTerminal),

		idempotency.Op("startRun", "POST /sandboxes/{id}/runs", "Run commands one after the other, whoever goes away. With a key the sandbox is made if it is missing.", http.StatusAccepted, a.startRun).MaxBody(maxBigJSON).
			Example(v1.StartRun{Commands: []v1.RunCommandSpec{{Shell: new("make test")}}, ContinueOnError: true}).
			Extend(idempotency.Making(keyed.Run)),
		idempotency.Op("listRunsOf", "GET /sandboxes/{id}/runs", "List a sandbox's runs, newest first.", http.StatusOK, a.listRunsOf),
		idempotency.Op("listRuns", "GET /runs", "List the project's runs, newest first.", http.StatusOK, a.listRuns),
		idempotency.Op("getRun", "GET /runs/{run}", "Get a run with the output of its commands.", http.StatusOK, a.getRun),
		idempotency.Op("cancelRun", "POST /runs/{run}/cancel", "End a run: the command that it is at is killed, and no other begun.", http.StatusOK, a.cancelRun).
			Extend(idempotency.Keyless("twice is as once")),
		idempotency.Raw("runEvents", "GET /runs/{run}/events", "Follow a run: server-sent events run_started, command_started, command_stdout, command_stderr, command_finished, artifacts_extracted, and at last run_finished or run_failed, each with an id; error, where the stream breaks off.", http.StatusOK, a.runEvents).
			Media("", "text/event-stream").Events(runEventTypes()).
			Also(http.StatusNoContent, "", nil, "The run has ended, and Last-Event-ID is its last event's."),
		idempotency.Op("createArtifactLink", "POST /runs/{run}/links", "Make a link to an artifact of a run that is good for whoever has it.", http.StatusCreated, a.createArtifactLink).
			Extend(idempotency.Keyless("a link is a signature: nothing is made")),

		idempotency.Op("createShell", "POST /sandboxes/{id}/shells", "Make a shell: a bash whose directory, variables, functions and background jobs one command leaves to the next.", http.StatusCreated, a.createShell).
			Example(v1.CreateShell{Name: new("main"), Env: map[string]string{"DEBUG": "1"}}).
			Extend(idempotency.Making(keyed.Context)),
		idempotency.Op("listShells", "GET /sandboxes/{id}/shells", "List a sandbox's shells, oldest first.", http.StatusOK, a.listShells),
		idempotency.Op("getShell", "GET /sandboxes/{id}/shells/{name}", "Get a shell.", http.StatusOK, a.getShell),
		idempotency.Op("deleteShell", "DELETE /sandboxes/{id}/shells/{name}", "End a shell and all that was started in it.", http.StatusNoContent, a.deleteShell),
		idempotency.Op("interruptShell", "POST /sandboxes/{id}/shells/{name}/interrupt", "Interrupt the command that runs in a shell, as Ctrl-C does.", http.StatusNoContent, a.interruptShell).
			Extend(idempotency.Keyless("it begins nothing")),
		idempotency.Raw("shellExec", "POST /sandboxes/{id}/shells/{name}/exec", "Run a command in a shell, after those that came before; a shell that is not there is made. As exec, also streamed, but without cwd, and a timeout ends the command and not the shell, where that can be.", http.StatusOK, a.shellExec).
			Out(reflect.TypeFor[v1.ShellExecResult]()).MaxBody(maxBigJSON).
			Also(http.StatusOK, "text/event-stream", nil, "").Events(commandEventTypes(reflect.TypeFor[v1.ShellExecOutcome]())).
			Frames(v1.FramesType).
			Also(http.StatusAccepted, "", reflect.TypeFor[v1.ShellExecResult](), "It still runs after wait_seconds.").
			Example(v1.Exec{Command: new("mkdir -p app && cd app && export DEBUG=1"), WaitSeconds: new(30.0)}).
			Extend(idempotency.Running()),
		idempotency.Raw("shellCommand", "GET /sandboxes/{id}/shells/{name}/commands/{pid}", "Get the result of one of the last commands of a shell, with its output.", http.StatusOK, a.shellCommand).
			Out(reflect.TypeFor[v1.ShellExecResult]()).
			Also(http.StatusAccepted, "", reflect.TypeFor[v1.ShellExecResult](), "It still runs."),

		idempotency.Raw("runCode", "POST /sandboxes/{id}/code", "Run code in a context, whose variables live on. With Accept: text/event-stream it is streamed: events start (CodeStarted), stdout and stderr (Output) and result (CodeValue), then end (CodeOutcome) or error (Problem).", http.StatusOK, a.runCode).
			Out(reflect.TypeFor[v1.CodeResult]()).MaxBody(maxBigJSON).
			Also(http.StatusOK, "text/event-stream", nil, "").Events(codeEventTypes()).
			Example(v1.RunCode{Code: "x = 6 * 7\nx", Language: new("python")}).
			Extend(idempotency.Running()),
		idempotency.Op("createContext", "POST /sandboxes/{id}/code/contexts", "Make a context of code.", http.StatusCreated, a.createContext).
			Example(v1.CreateContext{Language: "python"}).
			Extend(idempotency.Making(keyed.Context)),
		idempotency.Op("listContexts", "GET /sandboxes/{id}/code/contexts", "List a sandbox's contexts of code, oldest first.", http.StatusOK, a.listContexts),
		idempotency.Op("getContext", "GET /sandboxes/{id}/code/contexts/{cid}", "Get a context.", http.StatusOK, a.getContext),
		idempotency.Op("restartContext", "POST /sandboxes/{id}/code/contexts/{cid}/restart", "End a context's kernel, with all that it started, and start another.", http.StatusOK, a.restartContext).
			Extend(idempotency.Keyless("it makes nothing")),
		idempotency.Op("interruptContext", "POST /sandboxes/{id}/code/contexts/{cid}/interrupt", "Interrupt the code that runs in a context; its variables stay.", http.StatusNoContent, a.interruptContext).
			Extend(idempotency.Keyless("it begins nothing")),
		idempotency.Op("deleteContext", "DELETE /sandboxes/{id}/code/contexts/{cid}", "End a context, with all that it started.", http.StatusNoContent, a.deleteContext),

		idempotency.Op("networkLog", "GET /sandboxes/{id}/network", "What a sandbox may reach, what it tried to, and what was refused.", http.StatusOK, a.networkLog),
		idempotency.Op("askNetwork", "POST /sandboxes/{id}/network/requests", "Ask that a sandbox may reach more: at once where an operator's rule allows it, else when a person grants it.", http.StatusOK, a.askNetwork).
			Example(v1.AskNetwork{AllowPresets: []string{"python"}, Reason: "to install requests"}).
			Extend(idempotency.Keyless("twice is as once")),
		idempotency.Op("listNetworkRequests", "GET /network/requests", "List what was asked for sandboxes' networks and waits for an answer.", http.StatusOK, a.listNetworkRequests),
		idempotency.Op("grantNetwork", "POST /network/requests/{request}/grant", "Let a sandbox reach what was asked for.", http.StatusOK, a.grantNetwork).
			Extend(idempotency.Keyless("it makes nothing")),
		idempotency.Op("denyNetwork", "POST /network/requests/{request}/deny", "Forget what was asked for.", http.StatusOK, a.denyNetwork).
			Extend(idempotency.Keyless("it makes nothing")),
		idempotency.Op("listPresets", "GET /network/presets", "List the names for lists of hosts, and what each stands for.", http.StatusOK, a.listPresets),
		idempotency.Op("listPorts", "GET /sandboxes/{id}/ports", "What listens in a sandbox.", http.StatusOK, a.listPorts),
		idempotency.Raw("connectPort", "GET /sandboxes/{id}/ports/{port}/connect", "Connect to a port: a WebSocket whose binary messages are the connection's bytes, both ways, and whose text messages are PortControl.", http.StatusSwitchingProtocols, a.connectPort),
		idempotency.Op("createPreview", "POST /sandboxes/{id}/previews", "Make a signed link to what a port serves over HTTP.", http.StatusCreated, a.createPreview).
			Example(v1.CreatePreview{Port: 8000, ExpiresSeconds: new(int64(3600))}).
			Extend(idempotency.Keyless("a link is a signature: nothing is made")),
	}
}

// serverOperations are those that tell what there is.
func (a *API) serverOperations() []httpapi.Operation {
	return []httpapi.Operation{
		idempotency.Op("getImagePool", "GET /images/{name}/pool", "Get the pools of an image: sandboxes that run before anybody asks for them.", http.StatusOK, a.getPool),
		idempotency.Op("updateImagePool", "PATCH /images/{name}/pool", "Change a pool of an image, or make one, from now on and also after a restart of the server. Needs the scope server:admin.", http.StatusOK, a.updatePool).
			Example(v1.UpdateImagePool{Min: new(2), Max: new(8)}),
		idempotency.Op("getInfo", "GET /info", "What this server is and can do.", http.StatusOK, a.getInfo),
		idempotency.Op("getLimits", "GET /limits", "What a sandbox may ask for, and what the caller's project may have, has and has left.", http.StatusOK, a.getLimits),
		idempotency.Raw("getOpenAPI", "GET /openapi.json", "This document.", http.StatusOK, a.getOpenAPI).Media("", "application/json").Open(!a.private),
	}
}
