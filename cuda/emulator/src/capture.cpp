// Stream capture and graphs: what may be captured, and the operations repeated.
#include "driver.h"

#include <stdio.h>

#include <algorithm>
#include <set>

using namespace rt;

namespace rt {
namespace {
std::vector<std::shared_ptr<Capture>>& active = *new std::vector<std::shared_ptr<Capture>>;
std::set<Graph*>& graphs = *new std::set<Graph*>;
std::set<GraphExec*>& execs = *new std::set<GraphExec*>;
thread_local CaptureMode thread_mode = Global;
}  // namespace

Result forbid(const char* call) {
  bool found = false;
  if (thread_mode == Relaxed) return Success;
  for (auto& c : active) {
    bool mine = c->thread == std::this_thread::get_id();
    if (mine ? c->mode == Relaxed : c->mode != Global || thread_mode != Global) continue;
    say("%s while a stream is being captured", call);
    c->invalid = found = true;
  }
  return found ? CaptureUnsupported : Success;
}

Result spoil(Stream* s, Result why) {
  if (s->capture) s->capture->invalid = true;
  return why;
}

Result captured(Stream* s, Op op) {
  if (s->capture->invalid) return CaptureInvalidated;
  s->capture->graph->ops.push_back(std::move(op));
  s->capture->clocks[s][s]++;
  return Success;
}

void end_captures(Primary* p) {
  for (size_t i = active.size(); i-- > 0;)
    if (active[i]->origin->primary == p) active.erase(active.begin() + i);
}

namespace {

// all_joined reports whether the origin comes after everything captured.
bool all_joined(const Capture& c) {
  const Clock& origin = c.clocks.at(c.origin);
  for (auto& [stream, clock] : c.clocks) {
    auto own = clock.find(stream);
    if (stream == c.origin || own == clock.end()) continue;
    auto seen = origin.find(stream);
    if (seen == origin.end() || seen->second < own->second) return false;
  }
  return true;
}

}  // namespace
}  // namespace rt

RT_API int cuThreadExchangeStreamCaptureMode(int* mode) {
  if (*mode < Global || *mode > Relaxed) return InvalidValue;
  CaptureMode before = thread_mode;
  thread_mode = (CaptureMode)*mode;
  return *mode = before, Success;
}

RT_API int cuStreamBeginCapture_v2(void* handle, int mode) {
  Primary* p;
  Stream* s;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  if (Result r = lookup(handle, p, &s)) return r;
  if (mode < Global || mode > Relaxed) return InvalidValue;
  if (s == p->legacy) return CaptureUnsupported;
  if (s->capture) return IllegalState;
  auto c = std::make_shared<Capture>();
  c->origin = s, c->thread = std::this_thread::get_id(), c->mode = (CaptureMode)mode;
  c->clocks[s];
  s->capture = c;
  active.push_back(c);
  return Success;
}

RT_API int cuStreamIsCapturing(void* handle, int* status) {
  Primary* p;
  Stream* s;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  if (Result r = lookup(handle, p, &s)) return r;
  return *status = !s->capture ? 0 : s->capture->invalid ? 2 : 1, Success;
}

RT_API int cuStreamEndCapture(void* handle, Graph** out) {
  Primary* p;
  Stream* s;
  Lock lock(world);
  *out = nullptr;
  if (Result r = enter(&p)) return r;
  if (Result r = lookup(handle, p, &s)) return r;
  auto c = s->capture;
  if (!c) return IllegalState;
  if (c->origin != s) return c->invalid = true, CaptureUnmatched;
  if (c->mode != Relaxed && c->thread != std::this_thread::get_id()) return c->invalid = true, CaptureWrongThread;
  bool joined = all_joined(*c);
  for (auto& [stream, clock] : c->clocks) stream->capture = nullptr;
  active.erase(std::find(active.begin(), active.end(), c));
  std::unique_ptr<Graph> graph = std::move(c->graph);
  if (c->invalid) return CaptureInvalidated;
  if (!joined) return CaptureUnjoined;
  *out = graph.release();
  graphs.insert(*out);
  return Success;
}

RT_API int cuGraphCreate(Graph** out, unsigned) {
  Lock lock(world);
  graphs.insert(*out = new Graph);
  return Success;
}

RT_API int cuGraphGetNodes(Graph* g, void** nodes, size_t* n) {
  Lock lock(world);
  if (!graphs.count(g)) return InvalidValue;
  if (nodes)
    for (size_t i = 0; i < *n; i++) nodes[i] = i < g->ops.size() ? (void*)&g->ops[i] : nullptr;
  return *n = g->ops.size(), Success;
}

RT_API int cuGraphDebugDotPrint(Graph* g, const char* path, unsigned) {
  Lock lock(world);
  if (!graphs.count(g)) return InvalidValue;
  FILE* f = fopen(path, "w");
  if (!f) return InvalidValue;
  fputs("digraph step {\n", f);
  for (size_t i = 0; i < g->ops.size(); i++) {
    fprintf(f, "  n%zu [label=\"%s\"];\n", i, g->ops[i].name.c_str());
    if (i) fprintf(f, "  n%zu -> n%zu;\n", i - 1, i);
  }
  fputs("}\n", f);
  fclose(f);
  return Success;
}

RT_API int cuGraphInstantiateWithFlags(GraphExec** out, Graph* g, unsigned long long) {
  Primary* p;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  if (!graphs.count(g)) return InvalidValue;
  execs.insert(*out = new GraphExec{std::make_shared<const std::vector<Op>>(g->ops)});
  return Success;
}

RT_API int cuGraphUpload(GraphExec* x, void* handle) {
  Primary* p;
  Stream* s;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  if (Result r = lookup(handle, p, &s)) return r;
  if (!execs.count(x)) return InvalidValue;
  return s->capture ? spoil(s, CaptureUnsupported) : Success;
}

RT_API int cuGraphLaunch(GraphExec* x, void* handle) {
  Primary* p;
  Stream* s;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  if (Result r = lookup(handle, p, &s)) return r;
  if (!execs.count(x)) return InvalidValue;
  auto ops = x->ops;
  return submit(s, {"cuGraphLaunch", [=] {
                      for (const Op& op : *ops)
                        if (Result r = op.run()) return r;
                      return Success;
                    }});
}

RT_API int cuGraphExecDestroy(GraphExec* x) {
  Lock lock(world);
  if (!execs.erase(x)) return InvalidValue;
  auto ops = std::move(x->ops);
  delete x;
  lock.unlock();  // the operations may hold what takes the lock
  return Success;
}

RT_API int cuGraphDestroy(Graph* g) {
  Lock lock(world);
  if (!graphs.erase(g)) return InvalidValue;
  lock.unlock();
  delete g;
  return Success;
}
