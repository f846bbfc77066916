// Made of the OpenAPI document by tools/tstypes. DO NOT EDIT.

export interface Account {
  home?: string;
  name?: string;
  workdir?: string;
}

export interface Amounts {
  commands_per_day?: null | number;
  cpu_cores?: null | number;
  cpu_seconds_per_month?: null | number;
  disk_mb?: null | number;
  memory_gib_seconds_per_month?: null | number;
  memory_mb?: null | number;
  processes?: null | number;
  running?: null | number;
  sandboxes?: null | number;
  snapshots?: null | number;
  volumes?: null | number;
}

export interface Archive {
  archived_at: string;
  digest: string;
  disk_bytes: number;
  id: string;
  place: string;
  size_bytes: number;
}

export interface Artifact {
  path: string;
  sha256: string;
  size: number;
  url: string;
}

export interface ArtifactLink {
  expires_at: string;
  url: string;
}

export interface ArtifactsExtracted {
  count: number;
  run_id: string;
}

export interface AskNetwork {
  allow_domains?: string[];
  allow_presets?: string[];
  reason?: string;
}

export interface AuditChain {
  from: number;
  hash: string;
  to: number;
  writer: string;
}

export interface AuditOutput {
  bytes: number;
  first: string;
  last: string;
  sha256: null | string;
}

export interface AuditPage {
  items: AuditRecord[];
  next_cursor: null | string;
}

export interface AuditPruned {
  dry_run: boolean;
  rows: number;
}

export interface AuditRecord {
  actor: null | string;
  address: null | string;
  at: string;
  bytes: null | number;
  call: null | string;
  cause: null | string;
  code: null | string;
  command: null | string;
  context_id: null | string;
  cwd: null | string;
  detail: null | string;
  duration_ms: null | number;
  exit_code: null | number;
  files_changed: FileChange[];
  files_changed_total: number;
  labels: Record<string, string>;
  language: null | string;
  outcome: string;
  path: null | string;
  process_id: null | string;
  project: null | string;
  request_id: null | string;
  sandbox_id: null | string;
  seq: number;
  signal: null | string;
  status: null | number;
  stderr: AuditOutput | null;
  stdout: AuditOutput | null;
  to: null | string;
  token_id: null | string;
  type: string;
  user: null | string;
  via: null | string;
  writer: string;
}

export interface AuditReport {
  altered: number[];
  chains: AuditChain[];
  complete: boolean;
  from: null | string;
  key: string;
  rows: number;
  to: null | string;
}

export interface Bound {
  max: number;
  min: number;
  unit: string;
}

export interface BuildImage {
  rebuild?: boolean;
}

export interface BuildStep {
  kept?: boolean;
  line?: number;
  phase: string;
  progress: number;
  step?: number;
  steps?: number;
  text: string;
}

export interface BulkError {
  code: string;
  error: string;
  sandbox_id: string;
}

export interface BulkResult {
  destroyed: string[];
  dry_run: boolean;
  errors: BulkError[];
  skipped: string[];
  stopped: string[];
}

export interface BulkSandboxes {
  all?: boolean;
  dry_run?: boolean;
  exclude_status?: string[];
  image?: null | string;
  metadata?: Record<string, string>;
  project?: null | string;
  sandbox_ids?: string[];
  search?: null | string;
  status?: string[];
  user_id?: null | string;
}

export interface Capability {
  reason?: string;
  remedy?: string;
  supported: boolean;
}

export interface ChangeFile {
  attributes?: Record<string, string>;
  group?: string;
  mode?: null | string;
  owner?: string;
  recursive?: boolean;
  remove_attributes?: string[];
  replace_attributes?: boolean;
}

export interface ClientSetup {
  command: string;
  file: string;
  id: string;
  language: string;
  link: string;
  note: string;
  snippet: string;
  title: string;
  token: string;
}

export interface ClientSetupList {
  items: ClientSetup[];
  placeholder: string;
  profiles: string[];
  token_variable: string;
  url: string;
}

export interface CodeError {
  name: string;
  traceback: string[];
  value: string;
}

export interface CodeOutcome {
  cause?: string;
  cause_detail?: string;
  cell_id: string;
  context_ended: boolean;
  context_id?: string;
  duration_ms: number;
  error?: CodeError | null;
  execution_count: number;
  exit_code: number;
  files_changed: FileChange[];
  files_changed_complete: boolean;
  files_changed_total: number;
  language: string;
  restarted?: string;
  results_dropped: number;
  signal?: string;
  status: string;
  stderr_bytes: number;
  stderr_truncated: boolean;
  stdout_bytes: number;
  stdout_truncated: boolean;
  timed_out: boolean;
}

export interface CodeResult {
  cause?: string;
  cause_detail?: string;
  cell_id: string;
  context_ended: boolean;
  context_id?: string;
  duration_ms: number;
  error?: CodeError | null;
  execution_count: number;
  exit_code: number;
  files_changed: FileChange[];
  files_changed_complete: boolean;
  files_changed_total: number;
  language: string;
  restarted?: string;
  results: CodeValue[];
  results_dropped: number;
  signal?: string;
  status: string;
  stderr: string;
  stderr_base64?: string;
  stderr_bytes: number;
  stderr_truncated: boolean;
  stdout: string;
  stdout_base64?: string;
  stdout_bytes: number;
  stdout_truncated: boolean;
  timed_out: boolean;
}

export interface CodeStarted {
  cell_id: string;
  context_id?: string;
  language: string;
  restarted?: string;
}

export interface CodeValue {
  at?: null | string;
  chart?: unknown;
  data?: unknown;
  data_truncated?: boolean;
  html?: string;
  javascript?: string;
  jpeg?: string;
  json?: unknown;
  latex?: string;
  main: boolean;
  markdown?: string;
  more?: Record<string, unknown>;
  omitted?: string[];
  pdf?: string;
  png?: string;
  svg?: string;
  text?: string;
  text_truncated?: boolean;
}

export interface CommandFinished {
  cause?: string;
  ended_at: string;
  error?: string;
  exit_code: number;
  index: number;
  run_id: string;
  status: string;
  stderr_truncated: boolean;
  stdout_truncated: boolean;
}

export interface CommandOutput {
  chunk: string;
  chunk_base64?: string;
  index: number;
  run_id: string;
  truncated: boolean;
}

export interface CommandStarted {
  argv?: string[];
  cwd: string;
  index: number;
  run_id: string;
  shell?: string;
  started_at: string;
}

export interface Configuration {
  items: ConfiguredValue[];
}

export interface ConfiguredValue {
  key: string;
  secret: boolean;
  setting?: string;
  source: string;
  value: unknown;
}

export interface Context {
  created_at: string;
  cwd: string;
  default: boolean;
  ended?: string;
  executions: number;
  id: string;
  language: string;
  last_used_at?: string;
  process_id?: string;
  queued: number;
  starts: number;
  status: string;
  user: string;
}

export interface ContextList {
  items: Context[];
}

export interface CreateArtifactLink {
  expires_seconds?: null | number;
  path: string;
}

export interface CreateContext {
  as_user?: null | string;
  cwd?: null | string;
  env?: Record<string, string>;
  language: string;
  user?: null | string;
}

export interface CreateExec {
  argv?: string[];
  as_user?: null | string;
  command?: null | string;
  cwd?: null | string;
  env?: Record<string, string>;
  image_command?: null | boolean;
  labels?: Record<string, string>;
  max_output_bytes?: null | number;
  max_stderr_bytes?: null | number;
  max_stdout_bytes?: null | number;
  merge_output?: null | boolean;
  name?: null | string;
  sandbox?: CreateSandbox;
  stdin?: null | string;
  stdin_base64?: null | string;
  stream_stdin?: null | boolean;
  timeout_seconds?: null | number;
  user?: null | string;
  wait_seconds?: null | number;
}

export interface CreateExecOutcome {
  cause?: string;
  cause_detail?: string;
  duration_ms: number;
  exit_code: null | number;
  files_changed: FileChange[];
  files_changed_complete: boolean;
  files_changed_total: number;
  process_id: string;
  sandbox_created: boolean;
  sandbox_differs?: string[];
  sandbox_id: string;
  signal?: string;
  signaled_by?: string;
  signaled_with?: string;
  snapshot_id?: string;
  status: string;
  stderr_bytes: number;
  stderr_truncated: boolean;
  stdout_bytes: number;
  stdout_truncated: boolean;
  timed_out: boolean;
}

export interface CreateExecResult {
  cause?: string;
  cause_detail?: string;
  duration_ms: number;
  exit_code: null | number;
  files_changed: FileChange[];
  files_changed_complete: boolean;
  files_changed_total: number;
  process_id: string;
  sandbox_created: boolean;
  sandbox_differs?: string[];
  sandbox_id: string;
  signal?: string;
  signaled_by?: string;
  signaled_with?: string;
  snapshot_id?: string;
  status: string;
  stderr: string;
  stderr_base64?: string;
  stderr_bytes: number;
  stderr_truncated: boolean;
  stdout: string;
  stdout_base64?: string;
  stdout_bytes: number;
  stdout_truncated: boolean;
  timed_out: boolean;
}

export interface CreateFileLink {
  expires_seconds?: number;
  max_bytes?: number;
  path: string;
  write?: boolean;
}

export interface CreatePreview {
  expires_seconds?: null | number;
  port: number;
}

export interface CreatePreviewLink {
  expires_seconds?: null | number;
  port: number;
}

export interface CreateProject {
  name: string;
  quotas?: Amounts | null;
}

export interface CreateSandbox {
  account?: Account | null;
  archive_after_seconds?: null | number;
  auto_delete?: null | boolean;
  auto_resume?: null | boolean;
  auto_start?: null | boolean;
  checkpoints?: "off" | "command" | null;
  cpu?: null | number;
  cpu_cores?: null | number;
  disk_mb?: null | number;
  domain_allow_list?: null | string;
  env?: Record<string, string>;
  env_vars?: Record<string, string>;
  from_snapshot?: null | string;
  idle_action?: "stop" | "pause" | null;
  idle_timeout_seconds?: null | number;
  if_exists?: null | string;
  image?: null | string;
  image_exact?: null | boolean;
  key?: null | string;
  memory_mb?: null | number;
  metadata?: Record<string, string>;
  network?: unknown;
  network_allow_list?: null | string;
  network_block_all?: null | boolean;
  network_enabled?: null | boolean;
  on_expiry?: null | string;
  pids?: null | number;
  previews?: UpdatePreviews | null;
  region?: null | string;
  retention_seconds?: null | number;
  runtime?: null | string;
  secrets?: Record<string, unknown>;
  session_key?: null | string;
  size?: null | string;
  skills?: string[];
  sudo?: null | boolean;
  template?: null | string;
  timeout_seconds?: null | number;
  token?: CreateSandboxToken | null;
  ttl_mode?: "absolute" | "sliding" | null;
  ttl_seconds?: null | number;
  user?: null | string;
  volumes?: MountVolume[];
}

export interface CreateSandboxToken {
  expires_in_seconds?: null | number;
  name?: string;
  scopes?: string[];
}

export interface CreateShell {
  as_user?: null | string;
  cwd?: null | string;
  env?: Record<string, string>;
  name?: null | string;
  user?: null | string;
}

export interface CreateSkill {
  description?: null | string;
  name?: null | string;
  skill_md_content: string;
}

export interface CreateSnapshot {
  name?: null | string;
  replace?: boolean;
}

export interface CreateTemplate {
  account?: Account | null;
  base?: null | string;
  cpu_cores?: null | number;
  default?: boolean;
  description?: null | string;
  disk_mb?: null | number;
  env?: Record<string, string>;
  for_skills?: string[];
  from_snapshot?: null | string;
  image?: null | string;
  memory_mb?: null | number;
  name: string;
  network?: unknown;
  pids?: null | number;
  ready?: ReadyProbe | null;
  server?: boolean;
  size?: null | string;
  start?: null | string;
  steps?: string[];
  user?: null | string;
  volumes?: MountVolume[];
}

export interface CreateToken {
  expires_at?: null | string;
  expires_in_seconds?: null | number;
  mcp_profile?: string;
  name: string;
  project?: null | string;
  scopes?: string[];
}

export interface CreateVolume {
  lifetime_seconds?: null | number;
  name: string;
  runtime?: null | string;
  size_mb?: null | number;
}

export interface CreateWebhook {
  description?: null | string;
  format?: null | string;
  types?: string[];
  url: string;
}

export interface CreatedToken {
  created_at: string;
  expires_at: null | string;
  id: string;
  last_used_at: null | string;
  mcp_profile?: string;
  name: string;
  old_secrets_until?: null | string;
  project: string;
  scopes: string[];
  token: string;
  token_omitted?: boolean;
}

export interface Defaults {
  command_timeout_seconds: number;
  cpu_cores: number;
  disk_mb: number;
  idle_timeout_seconds: number;
  max_command_timeout_seconds: number;
  memory_mb: number;
  pids: number;
  retention_seconds: number;
  root_allowed: boolean;
}

export interface Diff {
  from: string;
  items: DiffChange[];
  to: string;
  total: number;
  truncated?: boolean;
}

export interface DiffChange {
  action: "created" | "modified" | "deleted";
  escaped?: boolean;
  path: string;
  size_bytes: number;
}

export interface DoctorReport {
  failures: number;
  items: Finding[];
  status: string;
  time: string;
  took_ms: number;
  warnings: number;
}

export interface Event {
  actor: string;
  at: string;
  cause?: string;
  command?: string;
  context_id?: string;
  cwd?: string;
  detail?: string;
  duration_ms?: null | number;
  exit_code?: null | number;
  files_changed?: FileChange[];
  files_changed_total?: number;
  labels?: Record<string, string>;
  language?: string;
  name?: string;
  ok?: null | boolean;
  path?: string;
  process_id?: string;
  seq: number;
  signal?: string;
  signaled_by?: string;
  signaled_with?: string;
  size_bytes?: null | number;
  status?: string;
  stderr_bytes?: null | number;
  stderr_truncated?: boolean;
  stdout_bytes?: null | number;
  stdout_truncated?: boolean;
  to?: string;
  type: string;
  user?: string;
  via: string;
}

export interface EventPage {
  items: Event[];
  next_cursor: null | string;
}

export interface EventsPosition {
  detail?: string;
  id: string;
  reason?: string;
}

export interface Exec {
  argv?: string[];
  as_user?: null | string;
  command?: null | string;
  cwd?: null | string;
  env?: Record<string, string>;
  image_command?: null | boolean;
  labels?: Record<string, string>;
  max_output_bytes?: null | number;
  max_stderr_bytes?: null | number;
  max_stdout_bytes?: null | number;
  merge_output?: null | boolean;
  name?: null | string;
  stdin?: null | string;
  stdin_base64?: null | string;
  stream_stdin?: null | boolean;
  timeout_seconds?: null | number;
  user?: null | string;
  wait_seconds?: null | number;
}

export interface ExecOutcome {
  cause?: string;
  cause_detail?: string;
  duration_ms: number;
  exit_code: null | number;
  files_changed: FileChange[];
  files_changed_complete: boolean;
  files_changed_total: number;
  process_id: string;
  signal?: string;
  signaled_by?: string;
  signaled_with?: string;
  snapshot_id?: string;
  status: "exited" | "running";
  stderr_bytes: number;
  stderr_truncated: boolean;
  stdout_bytes: number;
  stdout_truncated: boolean;
  timed_out: boolean;
}

export interface ExecResult {
  cause?: string;
  cause_detail?: string;
  duration_ms: number;
  exit_code: null | number;
  files_changed: FileChange[];
  files_changed_complete: boolean;
  files_changed_total: number;
  process_id: string;
  signal?: string;
  signaled_by?: string;
  signaled_with?: string;
  snapshot_id?: string;
  status: "exited" | "running";
  stderr: string;
  stderr_base64?: string;
  stderr_bytes: number;
  stderr_truncated: boolean;
  stdout: string;
  stdout_base64?: string;
  stdout_bytes: number;
  stdout_truncated: boolean;
  timed_out: boolean;
}

export interface ExecStarted {
  after?: number;
  process_id: string;
  sandbox_id?: string;
}

export interface ExecutionLog {
  command: null | string;
  created_at: string;
  duration_ms: null | number;
  exit_code: null | number;
  files_changed: FileChange[];
  id: string;
  request_id: null | string;
  sandbox_id: string;
  source_type: string;
  status: string;
  stderr: string;
  stdout: string;
  tool_name: string;
  user_id: string;
  user_name: string;
}

export interface ExecutionLogPage {
  items: ExecutionLog[];
  limit: number;
  offset: number;
  total: number;
}

export interface Failures {
  cause: string;
  count: number;
  of: string;
}

export interface FileChange {
  action: "created" | "modified" | "deleted";
  escaped?: boolean;
  path: string;
  size_bytes: number;
}

export interface FileChanged {
  changed: number;
  ended?: string;
  file: FileInfo;
  left_out: LeftOut[];
  left_out_total: number;
}

export interface FileContent {
  content: string;
  encoding: "base64";
  path: string;
  size: number;
  version?: string;
}

export interface FileEntry {
  name: string;
  size: number;
  type: string;
}

export interface FileInfo {
  attributes?: Record<string, string>;
  gid: number;
  group?: string;
  mode: string;
  modified_at: string;
  name: string;
  owner?: string;
  path: string;
  size: number;
  target?: string;
  target_type?: string;
  type: string;
  uid: number;
  version?: string;
}

export interface FileLink {
  expires_at: string;
  max_bytes?: number;
  method: string;
  path: string;
  url: string;
}

export interface FilePage {
  items: FileInfo[];
  next_cursor: null | string;
}

export interface FileReplaced {
  code?: string;
  error?: string;
  path: string;
  remedy?: string;
  replacements: number;
}

export interface FilesReplaced {
  changed: number;
  failed: number;
  files: FileReplaced[];
  replacements: number;
}

export interface Finding {
  detail: string;
  name: string;
  remedy?: string;
  status: string;
}

export interface ForkSandbox {
  count?: null | number;
  from?: null | string;
  key?: null | string;
  metadata?: Record<string, string>;
}

export interface FoundFiles {
  ended?: string;
  files: FileInfo[];
  path: string;
  searched: number;
  skipped: number;
}

export interface FoundLine {
  cut?: boolean;
  line: number;
  path: string;
  text: string;
}

export interface FoundLines {
  ended?: string;
  matches: FoundLine[];
  path: string;
  searched: number;
  skipped: number;
}

export interface FrameEvent {
  data: unknown;
  event: string;
}

export interface GitAdd {
  all?: boolean;
  as_user?: string;
  files?: string[];
  force?: boolean;
  path?: string;
  timeout_seconds?: null | number;
}

export interface GitAddRemote {
  as_user?: string;
  name: string;
  overwrite?: boolean;
  path?: string;
  timeout_seconds?: null | number;
  url: string;
}

export interface GitBranch {
  at?: null | string;
  commit?: string;
  current: boolean;
  name: string;
  remote?: boolean;
  upstream?: string;
}

export interface GitBranches {
  current?: string;
  items: GitBranch[];
  truncated: boolean;
}

export interface GitCheckout {
  as_user?: string;
  create?: boolean;
  detach?: boolean;
  force?: boolean;
  path?: string;
  skip_hooks?: boolean;
  start?: string;
  target: string;
  timeout_seconds?: null | number;
}

export interface GitClone {
  as_user?: string;
  branch?: null | string;
  ca?: string;
  commit?: null | string;
  depth?: null | number;
  insecure_tls?: boolean;
  password?: null | string;
  path?: null | string;
  timeout_seconds?: null | number;
  token?: null | string;
  url: string;
  username?: null | string;
}

export interface GitCloned {
  branch?: string;
  commit?: string;
  path: string;
  url: string;
}

export interface GitCommit {
  all?: boolean;
  allow_empty?: boolean;
  amend?: boolean;
  as_user?: string;
  author?: string;
  email?: string;
  message?: string;
  path?: string;
  skip_hooks?: boolean;
  timeout_seconds?: null | number;
}

export interface GitConfig {
  key: string;
  value: string;
}

export interface GitCreateBranch {
  as_user?: string;
  checkout?: boolean;
  force?: boolean;
  name: string;
  path?: string;
  start?: string;
  timeout_seconds?: null | number;
}

export interface GitFileStatus {
  from?: string;
  index: string;
  path: string;
  submodule?: boolean;
  worktree: string;
}

export interface GitHead {
  branch?: string;
  commit?: string;
}

export interface GitInit {
  as_user?: string;
  bare?: boolean;
  branch?: string;
  path?: string;
  timeout_seconds?: null | number;
}

export interface GitInitialized {
  branch: string;
  existed: boolean;
}

export interface GitLog {
  items: GitLogCommit[];
  more: boolean;
}

export interface GitLogCommit {
  author: GitPerson;
  commit: string;
  committer: GitPerson;
  message: string;
  parents: string[];
}

export interface GitPerson {
  at?: null | string;
  email: string;
  name: string;
}

export interface GitPull {
  as_user?: string;
  branch?: string;
  ca?: string;
  insecure_tls?: boolean;
  mode?: string;
  password?: null | string;
  path?: string;
  remote?: string;
  skip_hooks?: boolean;
  timeout_seconds?: null | number;
  token?: null | string;
  url?: string;
  username?: null | string;
}

export interface GitPulled {
  before?: string;
  branch: string;
  commit: string;
  remote: string;
  url: string;
}

export interface GitPush {
  as_user?: string;
  branch?: string;
  ca?: string;
  delete?: boolean;
  force?: boolean;
  insecure_tls?: boolean;
  password?: null | string;
  path?: string;
  remote?: string;
  set_upstream?: boolean;
  skip_hooks?: boolean;
  tags?: boolean;
  timeout_seconds?: null | number;
  to?: string;
  token?: null | string;
  url?: string;
  username?: null | string;
}

export interface GitPushed {
  refs: GitPushedRef[];
  remote: string;
  url: string;
}

export interface GitPushedRef {
  detail: string;
  name: string;
  state: string;
}

export interface GitRemote {
  name: string;
  push_url?: string;
  url: string;
}

export interface GitRemotes {
  items: GitRemote[];
}

export interface GitReset {
  as_user?: string;
  files?: string[];
  mode?: string;
  path?: string;
  target?: string;
  timeout_seconds?: null | number;
}

export interface GitRestore {
  as_user?: string;
  files: string[];
  path?: string;
  source?: string;
  staged?: boolean;
  timeout_seconds?: null | number;
  worktree?: boolean;
}

export interface GitSetConfig {
  as_user?: string;
  key: string;
  path?: string;
  scope?: string;
  timeout_seconds?: null | number;
  value: string;
}

export interface GitStatus {
  ahead: number;
  behind: number;
  branch?: string;
  clean: boolean;
  commit?: string;
  detached: boolean;
  files: GitFileStatus[];
  published: boolean;
  root: string;
  truncated: boolean;
  upstream?: string;
}

export interface HostStats {
  cpu_limit: number;
  disk_limit_bytes: number;
  history: StatsSample[];
  memory_limit_bytes: number;
  now: StatsSample;
  task_limit: number;
}

export interface Hour {
  commands: number;
  counted: boolean;
  create_ms: Percentiles;
  creates: number;
  exec_ms: Percentiles;
  failures: Failures[];
  minutes: Minute[];
  refused_connections: number;
  since: string;
}

export interface Image {
  alias_notes?: Record<string, string>;
  aliases: string[];
  allowed: boolean;
  built_at: null | string;
  config?: ImageConfig | null;
  default: boolean;
  description?: string;
  digest?: string;
  error?: string;
  name: string;
  output?: string[];
  phase?: string;
  progress?: null | number;
  pulling?: PulledLayer[];
  sandboxes?: null | number;
  size_bytes: number;
  start?: string[];
  status: "missing" | "building" | "ready" | "failed";
  text?: string;
  versions: Record<string, string>;
}

export interface ImageBuild {
  built_at: null | string;
  current: boolean;
  digest: string;
  files: number;
  size_bytes: number;
  users: ImageUsers;
  versions: Record<string, string>;
}

export interface ImageConfig {
  architecture: string;
  cmd?: string[];
  devices_left_out?: number;
  entrypoint?: string[];
  env?: Record<string, string>;
  foreign_owners?: number;
  image_id: string;
  labels?: Record<string, string>;
  layers: string[];
  ports?: string[];
  user?: string;
  working_dir?: string;
}

export interface ImageDeletion {
  digests: string[];
  dry_run: boolean;
  freed_bytes: number;
  name: string;
  users: ImageUsers;
}

export interface ImageDetails {
  absent: string[];
  alias_notes?: Record<string, string>;
  aliases: string[];
  allowed: boolean;
  builds: ImageBuild[];
  built_at: null | string;
  config?: ImageConfig | null;
  default: boolean;
  description?: string;
  digest?: string;
  disk_bytes: number;
  env: Record<string, string>;
  error?: string;
  files: number;
  layers?: ImageLayer[];
  name: string;
  output?: string[];
  phase?: string;
  progress?: null | number;
  pulling?: PulledLayer[];
  sandboxes?: null | number;
  size_bytes: number;
  start?: string[];
  status: string;
  text?: string;
  versions: Record<string, string>;
}

export interface ImageLayer {
  diff_id: string;
  digest?: string;
  images: number;
  size_bytes: number;
}

export interface ImageList {
  items: Image[];
}

export interface ImagePool {
  cpu_cores: number;
  disk_mb: number;
  hits: number;
  image: string;
  making: number;
  max: number;
  memory_mb: number;
  min: number;
  misses: number;
  name: string;
  pids: number;
  ready: number;
  recent: boolean;
  refill: number;
  runtime: string;
  target: number;
  template?: string;
}

export interface ImagePools {
  image: string;
  pools: ImagePool[];
  ready: number;
}

export interface ImageUser {
  id: string;
  key?: string;
  name?: string;
  project: string;
  status: string;
}

export interface ImageUsers {
  pools: Record<string, number>;
  sandbox_count: number;
  sandboxes: ImageUser[];
  snapshot_count: number;
  snapshots: ImageUser[];
}

export interface ImagesPruned {
  builds: PrunedBuild[];
  cache_bytes: number;
  dry_run: boolean;
  freed_bytes: number;
  kept_bytes: number;
}

export interface Info {
  defaults: Defaults;
  max: Max;
  pools: Pool[];
  runtime: string;
  runtimes: Runtime[];
  sandboxes: Record<string, number>;
  started_at: string;
  version: string;
}

export interface InstallSkills {
  skill_ids: string[];
}

export interface InstalledSkill {
  digest: string;
  id: string;
  installed_at: string;
  name: string;
}

export interface LeftOut {
  path: string;
  reason: string;
}

export interface MakeDir {
  mode?: null | string;
  parents?: null | boolean;
  path: string;
  user?: null | string;
}

export interface Max {
  cpu_cores: number;
  disk_mb: number;
  memory_mb: number;
  pids: number;
}

export interface Minute {
  commands: number;
  create_ms: Percentiles;
  creates: number;
  exec_ms: Percentiles;
  failures: number;
  refused_connections: number;
  time: string;
}

export interface Mount {
  path: string;
  read_only: boolean;
  sub_path?: string;
  volume: string;
  volume_id: string;
}

export interface MountVolume {
  path: string;
  read_only?: boolean;
  sub_path?: null | string;
  volume: string;
}

export interface MoveFile {
  from: string;
  overwrite?: boolean;
  to: string;
  user?: null | string;
}

export interface NetworkEntry {
  address?: string;
  allowed: boolean;
  count: number;
  detail?: string;
  first_at: string;
  last_at: string;
  learned?: boolean;
  name?: string;
  port?: number;
  protocol: string;
  reason?: string;
}

export interface NetworkLog {
  dropped: number;
  items: NetworkEntry[];
  policy: NetworkPolicy;
  proposal: NetworkPolicy;
  since: null | string;
}

export interface NetworkPolicy {
  allow_cidrs?: string[];
  allow_domains?: string[];
  allow_ports?: string[];
  allow_presets?: string[];
  deny_cidrs?: string[];
  deny_domains?: string[];
  headers?: Record<string, Record<string, string>>;
  learn?: boolean;
  mode: string;
  preset_domains?: PresetDomain[];
}

export interface NetworkRequest {
  actor: string;
  allow_domains: string[];
  allow_presets: string[];
  created_at: null | string;
  expires_at: null | string;
  id: string;
  preset_domains: PresetDomain[];
  reason: string;
  sandbox: string;
  sandbox_id: string;
  state: string;
}

export interface NetworkRequestList {
  items: NetworkRequest[];
}

export interface OpenFiles {
  host: number;
  host_limit: number;
  server: number;
  server_limit: number;
}

export interface Outcome {
  bytes: number;
  path: string;
  reason?: string;
}

export interface Output {
  at: string;
  data: string;
  data_base64?: string;
}

export interface OutputEnd {
  cursor: number;
}

export interface OutputGap {
  bytes: number;
  frames?: number;
  stream?: string;
  why: string;
}

export interface Overview {
  host: HostStats | null;
  hour: Hour;
  open_files: OpenFiles | null;
  project: null | string;
  records_full: null | string;
  sandboxes: Record<string, number>;
  started_at: string;
  stores: StoreStats[];
  time: string;
  use: OverviewUse | null;
}

export interface OverviewUse {
  cpus: null | number;
  disk_bytes: null | number;
  memory_bytes: null | number;
  network_in_bytes_per_second: null | number;
  network_out_bytes_per_second: null | number;
  sandboxes: number;
  tasks: null | number;
  time: string;
}

export interface Percentiles {
  count: number;
  p50: null | number;
  p95: null | number;
}

export interface Pool {
  cpu_cores: number;
  disk_mb: number;
  hits: number;
  image: string;
  making: number;
  max: number;
  memory_mb: number;
  min: number;
  misses: number;
  name: string;
  pids: number;
  ready: number;
  runtime: string;
  target: number;
}

export interface Port {
  address: string;
  command?: string;
  pid?: number;
  port: number;
  protocol: string;
  url?: string;
  user: string;
}

export interface PortList {
  items: Port[];
  truncated?: boolean;
}

export interface Preset {
  about: string;
  domains: PresetDomain[];
  name: string;
}

export interface PresetDomain {
  domain: string;
  preset: string;
  source: string;
}

export interface PresetList {
  image_built: boolean;
  items: Preset[];
}

export interface Preview {
  base_url: string;
  expires_at: string;
  id: string;
  path_url: string;
  port: number;
  sandbox_id: string;
  token: string;
  url: string;
}

export interface PreviewLink {
  created_at: string;
  created_by: string;
  expires_at: null | string;
  id: string;
  port: number;
  sandbox_id: string;
  token: string;
  url?: string;
}

export interface PreviewLinkList {
  items: PreviewLink[];
}

export interface Previews {
  access: string;
  host: string;
  public_allowed: boolean;
  public_ports: number[];
  token: null | string;
}

export interface Problem {
  cause?: string;
  code: "malformed" | "invalid" | "too_large" | "unauthenticated" | "denied" | "not_found" | "exists" | "conflict" | "precondition_failed" | "state" | "exhausted" | "full" | "unsupported" | "unavailable" | "timeout" | "canceled" | "internal";
  detail: string;
  errors?: ProblemField[];
  reason?: string;
  remedy?: string;
  request_id: string;
  status: number;
  title: string;
  type: string;
  version?: string;
}

export interface ProblemField {
  field: string;
  message: string;
}

export interface Process {
  argv?: string[];
  cause?: string;
  cause_detail?: string;
  command?: string;
  cwd: string;
  duration_ms: number;
  ended_at: null | string;
  exit_code: null | number;
  labels?: Record<string, string>;
  last_seq: number;
  name?: string;
  pid: number;
  process_id: string;
  signal?: string;
  signaled_by?: string;
  signaled_with?: string;
  started_at: string;
  status: "exited" | "running";
  stderr_bytes: number;
  stderr_truncated: boolean;
  stdout_bytes: number;
  stdout_truncated: boolean;
  timed_out: boolean;
  tty: boolean;
  user: string;
}

export interface ProcessControl {
  close_stdin?: boolean;
  end?: OutputEnd | null;
  error?: Problem | null;
  exit?: Process | null;
  gap?: OutputGap | null;
  refused?: Problem | null;
  resize?: TerminalSize | null;
  signal?: null | string;
}

export interface ProcessInput {
  bytes_taken: number;
  closed: boolean;
  total_bytes: number;
}

export interface ProcessList {
  items: Process[];
  next_cursor: null | string;
}

export interface Project {
  budget_reset_at: string;
  commands_reset_at: string;
  created_at: string;
  created_by?: string;
  left: Amounts;
  name: string;
  quotas: Amounts;
  used: Amounts;
}

export interface ProjectEvent {
  actor?: string;
  at: string;
  id: string;
  object: unknown;
  object_id: string;
  project: null | string;
  type: string;
  via?: string;
}

export interface ProjectList {
  items: Project[];
}

export interface PromoteSandbox {
  name?: null | string;
}

export interface PruneAudit {
  before: string;
  dry_run?: boolean;
}

export interface PruneImages {
  all?: boolean;
  cache?: boolean;
  dry_run?: boolean;
}

export interface PrunedBuild {
  digest: string;
  name: string;
  size_bytes: number;
}

export interface PullImage {
  reference: string;
}

export interface PulledLayer {
  digest: string;
  done_bytes: number;
  size_bytes: number;
  status: string;
}

export interface PushImage {
  reference: string;
}

export interface PushStep {
  sent_bytes: number;
  total_bytes: number;
}

export interface PushedImage {
  digest: string;
  reference: string;
  sent_bytes: number;
  size_bytes: number;
}

export interface ReadyProbe {
  command?: string;
  interval_seconds?: null | number;
  port?: number;
  timeout_seconds?: null | number;
}

export interface ReplaceInFiles {
  files: string[];
  ignore_case?: boolean;
  pattern: string;
  regex?: boolean;
  replacement: string;
  user?: null | string;
}

export interface ResizeProcess {
  cols: number;
  rows: number;
}

export interface RollbackSandbox {
  to: string;
}

export interface RotateToken {
  grace_seconds?: null | number;
}

export interface RotateWebhook {
  grace_seconds?: null | number;
}

export interface RotatedToken {
  created_at: string;
  expires_at: null | string;
  id: string;
  last_used_at: null | string;
  mcp_profile?: string;
  name: string;
  old_secrets_until?: null | string;
  project: string;
  scopes: string[];
  token: string;
}

export interface Run {
  artifacts: Artifact[];
  artifacts_error?: string;
  artifacts_url: string;
  commands?: RunCommand[];
  created_at: string;
  ended_at: null | string;
  error?: string;
  events_url: string;
  identifier: string;
  run_id: string;
  sandbox_container_id: string;
  sandbox_name: string;
  started_at: null | string;
  state: string;
  status_url: string;
}

export interface RunCode {
  as_user?: null | string;
  code: string;
  context_id?: null | string;
  cwd?: null | string;
  env?: Record<string, string>;
  interrupt_on_disconnect?: null | boolean;
  language?: null | string;
  max_stderr_bytes?: null | number;
  max_stdout_bytes?: null | number;
  stateless?: null | boolean;
  stream?: null | boolean;
  timeout_seconds?: null | number;
  user?: null | string;
}

export interface RunCommand {
  allow_failure?: boolean;
  argv?: string[];
  cause?: string;
  cwd: string;
  ended_at: null | string;
  env?: Record<string, string>;
  error?: string;
  exit_code?: null | number;
  index: number;
  process_id?: string;
  shell?: string;
  signal?: string;
  started_at: null | string;
  status: string;
  stderr: string;
  stderr_bytes: number;
  stderr_truncated: boolean;
  stdout: string;
  stdout_bytes: number;
  stdout_truncated: boolean;
}

export interface RunCommandSpec {
  allow_failure?: boolean;
  argv?: string[];
  cwd?: null | string;
  env?: Record<string, string>;
  shell?: null | string;
  timeout_ms?: null | number;
}

export interface RunEnded {
  ended_at: string;
  error?: string;
  run_id: string;
  state: string;
}

export interface RunList {
  items: Run[];
  next_cursor: null | string;
}

export interface RunStarted {
  identifier: string;
  run_id: string;
  sandbox_container_id: string;
  started_at: string;
}

export interface RunStreamError {
  error: string;
}

export interface Runtime {
  capabilities: Record<string, Capability>;
  error?: string;
  name: string;
}

export interface Sandbox {
  account: Account;
  archive?: Archive | null;
  archive_after_seconds: number;
  auto_delete: boolean;
  auto_resume: boolean;
  auto_start: boolean;
  bytes_downloaded: number;
  bytes_uploaded: number;
  checkpoints: "off" | "command";
  cpu_cores: number;
  created_at: string;
  differs?: string[];
  disk_mb: number;
  env_names: string[];
  exec_count: number;
  exec_total_ms: number;
  expires_at: null | string;
  forked_from: null | string;
  id: string;
  idle_action: "stop" | "pause";
  idle_timeout_seconds: number;
  image: string;
  image_digest: string;
  image_note?: string;
  image_versions?: Record<string, string>;
  key: null | string;
  last_activity_at: null | string;
  memory_mb: number;
  metadata: Record<string, string>;
  network: string;
  network_enabled: boolean;
  network_policy?: NetworkPolicy | null;
  on_expiry: string;
  parent_snapshot: null | string;
  pids: number;
  project: string;
  requested_image: string;
  retention_seconds: number;
  run_seconds: number;
  runtime: string;
  session_key: null | string;
  skills: InstalledSkill[];
  started_at: null | string;
  status: "deleted" | "creating" | "running" | "pausing" | "paused" | "resuming" | "stopping" | "stopped" | "archiving" | "archived" | "unarchiving" | "starting" | "restoring" | "failed" | "deleting";
  stop_cause?: string;
  stop_detail?: string;
  stopped_at: null | string;
  sudo: boolean;
  template: SandboxTemplate | null;
  token?: SandboxToken | null;
  ttl_mode: "absolute" | "sliding" | null;
  ttl_seconds: null | number;
  unresponsive_since: null | string;
  updated_at: string;
  user: string;
  volumes: Mount[];
  workspace_path: string;
}

export interface SandboxImage {
  description: string;
  display_name: string;
  id: string;
  is_default: boolean;
  name: string;
  size_bytes: number;
  status: string;
  template: string;
}

export interface SandboxImageList {
  items: SandboxImage[];
}

export interface SandboxImagePackages {
  categories: Record<string, null | string[]>;
}

export interface SandboxImagePool {
  idle_count: number;
  image_id: string;
  image_name: string;
  provider: string;
  warm_pool_max: number;
  warm_pool_min: number;
}

export interface SandboxImageTemplate {
  base_image: string;
  description: string;
  display_name: string;
  imported: boolean;
  name: string;
  package_count: number;
  packages: string[];
}

export interface SandboxImageTemplateList {
  templates: SandboxImageTemplate[];
}

export interface SandboxLimits {
  bounds: Record<string, Bound>;
  default_network: NetworkPolicy;
  network_presets: string[];
  networks: string[];
  project?: Project | null;
  regions: string[];
  sizes: Size[];
}

export interface SandboxList {
  items: Sandbox[];
}

export interface SandboxPage {
  items: Sandbox[];
  next_cursor: null | string;
  page: null | number;
  page_size: number;
  status_counts: Record<string, number>;
  total: number;
}

export interface SandboxSettings {
  config_fallback_image: string;
  db_active_images: string[];
  db_default_image: null | string;
  default_max_per_user: number;
  env_allowlist: string[];
  idle_timeout_seconds: number;
  provider_type: string;
  stopped_retention_seconds: number;
  warm_pool_enabled: boolean;
}

export interface SandboxStart {
  command: string;
  output?: string;
  process_id: null | string;
  ready: null | boolean;
  reason?: string;
}

export interface SandboxStats {
  cpu_limit: number;
  disk_limit_bytes: number;
  history: StatsSample[];
  id: string;
  key: null | string;
  memory_limit_bytes: number;
  now: StatsSample | null;
  processes?: StatsProcesses | null;
  project: string;
  status: string;
  task_limit: number;
}

export interface SandboxTemplate {
  chosen_by: string;
  id: null | string;
  name: null | string;
  start?: SandboxStart | null;
  version: null | number;
}

export interface SandboxToken {
  expires_at: null | string;
  name: string;
  sandbox_id: string;
  scopes: string[];
  token?: string;
  token_omitted?: boolean;
}

export interface Secret {
  created_at: string;
  format?: string;
  header?: string;
  hosts: string[];
  name: string;
  sandbox_id: null | string;
  stand_in_headers?: string[];
  updated_at: string;
}

export interface SecretList {
  items: Secret[];
}

export interface SeenClient {
  actor: string;
  calls: number;
  first_seen_at: string;
  last_method: string;
  last_seen_at: string;
  last_tool: string;
  listed: number;
  listed_at: null | string;
  messages: number;
  name: string;
  profile: string;
  project: string;
  protocol: string;
  sandbox_id: null | string;
  title: string;
  token_id: null | string;
  version: string;
}

export interface SeenClientList {
  items: SeenClient[];
}

export interface Session {
  actor: string;
  address: string;
  agent: string;
  created_at: string;
  current: boolean;
  expires_at: string;
  id: string;
  last_used_at: string;
  project: string;
  token_id: null | string;
}

export interface SessionCode {
  code: string;
  expires_at: string;
}

export interface SessionList {
  items: Session[];
}

export interface SetSecret {
  format?: null | string;
  header?: null | string;
  hosts?: string[];
  stand_in_headers?: string[];
  value: string;
}

export interface SetUserQuota {
  max_cpu_cores?: null | number;
  max_exec_per_day?: null | number;
  max_memory_mb?: null | number;
  max_sandboxes?: null | number;
}

export interface Setting {
  about: string;
  changed_at?: null | string;
  changed_by?: string;
  holds: string;
  name: string;
  otherwise: unknown;
  source: string;
  value: unknown;
}

export interface SettingList {
  items: Setting[];
}

export interface Shell {
  created_at: string;
  cwd: string;
  ended_reason?: string;
  name: string;
  process_id: string;
  queued: number;
  shell_id: string;
  status: string;
  used_at: null | string;
  user: string;
}

export interface ShellExecOutcome {
  cause?: string;
  cause_detail?: string;
  duration_ms: number;
  exit_code: null | number;
  files_changed: FileChange[];
  files_changed_complete: boolean;
  files_changed_total: number;
  process_id: string;
  shell: ShellState;
  signal?: string;
  signaled_by?: string;
  signaled_with?: string;
  snapshot_id?: string;
  status: string;
  stderr_bytes: number;
  stderr_truncated: boolean;
  stdout_bytes: number;
  stdout_truncated: boolean;
  timed_out: boolean;
}

export interface ShellExecResult {
  cause?: string;
  cause_detail?: string;
  duration_ms: number;
  exit_code: null | number;
  files_changed: FileChange[];
  files_changed_complete: boolean;
  files_changed_total: number;
  process_id: string;
  shell: ShellState;
  signal?: string;
  signaled_by?: string;
  signaled_with?: string;
  snapshot_id?: string;
  status: string;
  stderr: string;
  stderr_base64?: string;
  stderr_bytes: number;
  stderr_truncated: boolean;
  stdout: string;
  stdout_base64?: string;
  stdout_bytes: number;
  stdout_truncated: boolean;
  timed_out: boolean;
}

export interface ShellList {
  items: Shell[];
}

export interface ShellState {
  ended: boolean;
  name: string;
  restarted?: string;
  shell_id: string;
}

export interface SignIn {
  code?: string;
  token?: string;
}

export interface SignalProcess {
  signal: string;
  tree?: null | boolean;
}

export interface Size {
  cpu_cores: number;
  memory_mb: number;
  name: string;
}

export interface Skill {
  allowed_tools: string[];
  author?: string;
  compatibility?: string;
  created_at: string;
  created_by: string;
  description: string;
  digest: string;
  files: SkillFile[];
  id: string;
  license?: string;
  name: string;
  package_size_bytes: number;
  project: string;
  skill_md_content?: null | string;
  source_type: string;
  tags: string[];
  updated_at: string;
  version?: string;
}

export interface SkillFile {
  path: string;
  size_bytes: number;
}

export interface SkillList {
  items: Skill[];
  total: number;
}

export interface SkillNotInstalled {
  error: string;
  id: string;
  name: string;
}

export interface SkillsInstalled {
  already_installed: string[];
  extraction_errors: SkillNotInstalled[];
  installed: string[];
  not_found: string[];
}

export interface Snapshot {
  archive?: Archive | null;
  auto: boolean;
  cpu_cores: number;
  created_at: string;
  created_by: string;
  detail?: string;
  disk_mb: number;
  env_names: string[];
  id: string;
  image: string;
  image_digest: string;
  memory_mb: number;
  name: null | string;
  parent_snapshot: null | string;
  pids: number;
  project: string;
  runtime: string;
  sandbox_id: null | string;
  size_bytes: null | number;
  status: "creating" | "ready" | "deleting";
}

export interface SnapshotPage {
  items: Snapshot[];
  next_cursor: null | string;
  total: number;
}

export interface StartProcess {
  argv?: string[];
  as_user?: null | string;
  cols?: null | number;
  command?: null | string;
  cwd?: null | string;
  env?: Record<string, string>;
  image_command?: null | boolean;
  labels?: Record<string, string>;
  max_output_bytes?: null | number;
  max_stderr_bytes?: null | number;
  max_stdout_bytes?: null | number;
  merge_output?: null | boolean;
  name?: null | string;
  rows?: null | number;
  stdin?: null | string;
  stdin_base64?: null | string;
  stream_stdin?: null | boolean;
  term?: null | string;
  timeout_seconds?: null | number;
  tty?: null | boolean;
  user?: null | string;
}

export interface StartRun {
  as_user?: null | string;
  commands: RunCommandSpec[];
  continue_on_error?: boolean;
  default_cwd?: null | string;
  default_env?: Record<string, string>;
  lock_sandbox?: boolean;
  ttl_seconds?: null | number;
  wait_seconds?: null | number;
}

export interface StatsList {
  history: StatsSample[];
  host: HostStats | null;
  items: SandboxStats[];
  total: StatsTotal;
}

export interface StatsProcess {
  age_seconds: number;
  cpu_seconds: number;
  cpus: number;
  memory_bytes: number;
  name: string;
  parent_pid: number;
  pid: number;
  state: string;
  threads: number;
}

export interface StatsProcesses {
  items: StatsProcess[];
  total: number;
}

export interface StatsSample {
  cpu_seconds: null | number;
  cpus: null | number;
  disk_bytes: null | number;
  memory_bytes: null | number;
  memory_peak_bytes: null | number;
  network_in_bytes: null | number;
  network_in_bytes_per_second: null | number;
  network_out_bytes: null | number;
  network_out_bytes_per_second: null | number;
  tasks: null | number;
  time: string;
}

export interface StatsTotal {
  cpus: null | number;
  disk_bytes: null | number;
  memory_bytes: null | number;
  network_in_bytes_per_second: null | number;
  network_out_bytes_per_second: null | number;
  sandboxes: number;
  tasks: null | number;
}

export interface StopSandbox {
  grace_seconds?: null | number;
}

export interface StoreStats {
  failed: null | string;
  free_bytes: number;
  full: null | string;
  host_free_bytes: number;
  host_size_bytes: number;
  room_bytes: number;
  runtime: string;
  size_bytes: number;
}

export interface Template {
  account?: Account | null;
  cpu_cores?: null | number;
  created_at: string;
  created_by: string;
  default: boolean;
  description?: string;
  disk_mb?: null | number;
  dockerfile?: string;
  env: Record<string, string>;
  failure?: TemplateFailure | null;
  for_skills: string[];
  from_sandbox?: string;
  from_snapshot?: string;
  id: string;
  image?: string;
  image_digest?: string;
  inactive: boolean;
  memory_mb?: null | number;
  name: string;
  network?: NetworkPolicy | null;
  origin?: string;
  pids?: null | number;
  ready?: ReadyProbe | null;
  server: boolean;
  start?: string;
  status: string;
  steps: string[];
  user?: string;
  version: number;
  volumes: MountVolume[];
}

export interface TemplateFailure {
  command?: string;
  exit_code: number;
  output?: string;
  reason: string;
  step: number;
}

export interface TemplateList {
  items: Template[];
  total: number;
}

export interface TerminalControl {
  error?: Problem | null;
  exit?: TerminalExit | null;
  refused?: Problem | null;
  resize?: TerminalSize | null;
  signal?: null | string;
}

export interface TerminalExit {
  cause?: string;
  cause_detail?: string;
  exit_code: number;
  signal?: string;
  signaled_by?: string;
  signaled_with?: string;
}

export interface TerminalSize {
  cols: number;
  rows: number;
}

export interface TextDiff {
  added: number;
  from: string;
  from_file: FileInfo | null;
  hunks: TextHunk[];
  kind: string;
  path: string;
  removed: number;
  to: string;
  to_file: FileInfo | null;
  truncated?: boolean;
}

export interface TextHunk {
  from_line: number;
  from_lines: number;
  lines: string[];
  to_line: number;
  to_lines: number;
}

export interface Token {
  created_at: string;
  expires_at: null | string;
  id: string;
  last_used_at: null | string;
  mcp_profile?: string;
  name: string;
  old_secrets_until?: null | string;
  project: string;
  scopes: string[];
}

export interface TokenList {
  items: Token[];
}

export interface Unpacked {
  bytes: number;
  entries: number;
  left_out: LeftOut[];
  left_out_total: number;
  outcomes?: Outcome[];
}

export interface UpdateImagePool {
  cpu_cores?: null | number;
  disk_mb?: null | number;
  max?: null | number;
  memory_mb?: null | number;
  min?: null | number;
  pids?: null | number;
  pool?: null | string;
  refill?: null | number;
  size?: null | string;
  template?: null | string;
}

export interface UpdatePreviews {
  access?: null | string;
  host?: null | string;
  public_ports?: number[];
  token?: null | boolean;
}

export interface UpdateProject {
  quotas?: Amounts | null;
}

export interface UpdateSandbox {
  archive_after_seconds?: null | number;
  auto_delete?: null | boolean;
  auto_resume?: null | boolean;
  auto_start?: null | boolean;
  checkpoints?: "off" | "command" | null;
  cpu?: null | number;
  cpu_cores?: null | number;
  disk_mb?: null | number;
  domain_allow_list?: null | string;
  env?: Record<string, string>;
  env_set?: Record<string, string>;
  env_unset?: string[];
  env_vars?: Record<string, string>;
  extend_to?: null | string;
  idle_action?: "stop" | "pause" | null;
  idle_timeout_seconds?: null | number;
  key?: null | string;
  memory_mb?: null | number;
  metadata?: Record<string, string>;
  network?: unknown;
  network_allow_list?: null | string;
  network_block_all?: null | boolean;
  network_enabled?: null | boolean;
  on_expiry?: null | string;
  pids?: null | number;
  retention_seconds?: null | number;
  session_key?: null | string;
  size?: null | string;
  sudo?: null | boolean;
  timeout_seconds?: null | number;
  ttl_mode?: "absolute" | "sliding" | null;
  ttl_seconds?: null | number;
  volumes?: MountVolume[];
}

export interface UpdateSandboxSettings {
  db_active_images?: string[];
  db_default_image?: null | string;
  default_max_per_user?: null | number;
  env_allowlist?: string[];
  idle_timeout_seconds?: null | number;
  stopped_retention_seconds?: null | number;
  warm_pool_enabled?: null | boolean;
}

export interface UpdateSettings {
  allow_root?: null | boolean;
  allowed_images?: string[];
  allowed_variables?: string[];
  command_timeout_seconds?: null | number;
  default_image?: null | string;
  default_network?: null | string;
  exact_images?: null | boolean;
  idle_timeout_seconds?: null | number;
  log_level?: null | string;
  log_mcp?: null | boolean;
  log_requests?: null | boolean;
  log_tools?: null | boolean;
  max_network?: null | string;
  max_previews?: null | string;
  max_sandboxes?: null | number;
  pools?: string[];
  pools_enabled?: null | boolean;
  retention_seconds?: null | number;
  unset?: string[];
}

export interface UpdateTemplate {
  default?: null | boolean;
  inactive?: null | boolean;
  server?: boolean;
}

export interface UpdateVolume {
  lifetime_seconds?: null | number;
}

export interface UpdateWebhook {
  description?: null | string;
  enabled?: null | boolean;
  types?: string[];
  url?: null | string;
}

export interface Usage {
  bytes_downloaded: number;
  bytes_uploaded: number;
  command_seconds: number;
  commands: number;
  cpu_seconds: number;
  disk_gib_seconds: number;
  memory_gib_seconds: number;
  project: null | string;
  run_seconds: number;
  time: null | string;
  token: null | string;
}

export interface UsageReport {
  by: string[];
  items: Usage[];
  since: null | string;
  until: null | string;
}

export interface UsageSummary {
  since: null | string;
  until: null | string;
  users: UserUsage[];
}

export interface UserQuota {
  active_sandboxes: number;
  is_custom: boolean;
  max_cpu_cores: number;
  max_exec_per_day: number;
  max_memory_mb: number;
  max_sandboxes: number;
  user_id: string;
}

export interface UserQuotas {
  platform_defaults: UserQuota;
  quotas: UserQuota[];
}

export interface UserUsage {
  bytes_downloaded: number;
  bytes_uploaded: number;
  exec_count: number;
  exec_total_ms: number;
  sandbox_count: number;
  user_id: string;
}

export interface Volume {
  created_at: string;
  created_by: string;
  expires_at: null | string;
  id: string;
  lifetime_seconds: null | number;
  name: string;
  project: string;
  runtime: string;
  size_mb: number;
  status: "creating" | "ready" | "deleting";
  used_bytes: null | number;
  users: string[];
}

export interface VolumeList {
  items: Volume[];
}

export interface WatchEnd {
  detail?: string;
  reason: "removed" | "stopped";
}

export interface WatchEvent {
  dropped?: number;
  escaped?: boolean;
  exchange?: boolean;
  from?: string;
  is_dir?: boolean;
  path?: string;
  seq: number;
  time: string;
  type: "created" | "modified" | "deleted" | "renamed" | "attributes" | "dropped";
}

export interface Watching {
  path: string;
  recursive: boolean;
}

export interface Webhook {
  created_at: string;
  created_by: string;
  description: string;
  detail?: string;
  disabled_at: null | string;
  disabled_by?: string;
  failures: number;
  format: string;
  id: string;
  old_secret_until: null | string;
  project: string;
  secret?: string;
  status: string;
  types: string[];
  updated_at: string;
  url: string;
}

export interface WebhookDelivery {
  attempts: number;
  created_at: string;
  detail?: string;
  done_at: null | string;
  duration_ms: number;
  event_id: string;
  id: string;
  next_attempt_at: null | string;
  repeats: null | string;
  response_status: null | number;
  status: string;
  type: string;
  webhook_id: string;
}

export interface WebhookDeliveryPage {
  items: WebhookDelivery[];
  next_cursor: null | string;
}

export interface WebhookList {
  items: Webhook[];
}

export interface Whoami {
  expires_at: null | string;
  left?: Amounts | null;
  mcp_profile?: string;
  name: string;
  project: string;
  sandbox_id?: null | string;
  scopes: string[];
  token_id: null | string;
}

export interface WriteFile {
  attributes?: Record<string, string>;
  content?: null | string;
  encoding?: null | string;
  mode?: null | string;
  path?: null | string;
  sync?: boolean;
  user?: null | string;
}
