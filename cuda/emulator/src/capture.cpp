// Stream capture and graphs.
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
  auto& nodes = s->capture->graph->nodes;
  auto& ends = s->capture->ends[s];
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  nodes.push_back({std::move(op), ends, s != s->capture->origin});
  ends = {nodes.size() - 1};
  return Success;
}

void end_captures(Primary* p) {
  for (size_t i = active.size(); i-- > 0;)
    if (active[i]->origin->primary == p) active.erase(active.begin() + i);
}

namespace {

// all_joined reports whether the origin comes after everything captured.
bool all_joined(const Capture& c) {
  auto& nodes = c.graph->nodes;
  std::vector<bool> before(nodes.size());
  for (size_t n : c.ends.at(c.origin)) before[n] = true;
  for (size_t n = nodes.size(); n-- > 0;) {  // edges lead to nodes with higher numbers
    if (!before[n]) return false;
    for (size_t m : nodes[n].after) before[m] = true;
  }
  return true;
}

// order returns the operations in an order that the edges allow, with branches as early or as
// late as possible.
std::shared_ptr<const std::vector<Op>> order(const Graph& g, bool branches_first) {
  auto ops = std::make_shared<std::vector<Op>>();
  std::vector<std::vector<size_t>> next(g.nodes.size());
  std::vector<size_t> missing(g.nodes.size());
  std::set<size_t> ready[2];  // those that run first, and the others
  auto add = [&](size_t n) { ready[g.nodes[n].branch != branches_first].insert(n); };
  for (size_t n = 0; n < g.nodes.size(); n++) {
    missing[n] = g.nodes[n].after.size();
    for (size_t m : g.nodes[n].after) next[m].push_back(n);
    if (!missing[n]) add(n);
  }
  while (ops->size() < g.nodes.size()) {
    auto& from = ready[ready[0].empty()];
    size_t n = *from.begin();
    from.erase(from.begin());
    ops->push_back(g.nodes[n].op);
    for (size_t m : next[n])
      if (!--missing[m]) add(m);
  }
  return ops;
}

// draw writes a graph in DOT.
bool draw(const Graph& g, const char* path) {
  FILE* f = fopen(path, "w");
  if (!f) return false;
  fputs("digraph step {\n", f);
  for (size_t n = 0; n < g.nodes.size(); n++) {
    fprintf(f, "  n%zu [label=\"%s\"];\n", n, g.nodes[n].op.name.c_str());
    for (size_t m : g.nodes[n].after) fprintf(f, "  n%zu -> n%zu;\n", m, n);
  }
  fputs("}\n", f);
  return fclose(f) == 0;
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
  c->ends[s];
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
  for (auto& [stream, ends] : c->ends) stream->capture = nullptr;
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
    for (size_t i = 0; i < *n; i++) nodes[i] = i < g->nodes.size() ? (void*)&g->nodes[i] : nullptr;
  return *n = g->nodes.size(), Success;
}

RT_API int cuGraphDebugDotPrint(Graph* g, const char* path, unsigned) {
  Lock lock(world);
  if (!graphs.count(g)) return InvalidValue;
  return draw(*g, path) ? Success : InvalidValue;
}

RT_API int cuGraphInstantiateWithFlags(GraphExec** out, Graph* g, unsigned long long) {
  Primary* p;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  if (!graphs.count(g)) return InvalidValue;
  execs.insert(*out = new GraphExec{order(*g, false), order(*g, true)});
  static int drawn;
  if (const char* dir = getenv("RINGTRAIN_EMULATOR_GRAPHS"))
    draw(*g, (std::string(dir) + "/" + std::to_string(getpid()) + "-" + std::to_string(++drawn) + ".dot").c_str());
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
  auto ops = x->launches++ % 2 ? x->early : x->late;
  return submit(s, {"cuGraphLaunch", [=] {
                      for (const Op& op : *ops)
                        if (Result r = op.run()) return r;
                      return Success;
                    }});
}

RT_API int cuGraphExecDestroy(GraphExec* x) {
  Lock lock(world);
  if (!execs.erase(x)) return InvalidValue;
  std::unique_ptr<GraphExec> gone(x);
  lock.unlock();  // destructors of the operations may take the lock
  return Success;
}

RT_API int cuGraphDestroy(Graph* g) {
  Lock lock(world);
  if (!graphs.erase(g)) return InvalidValue;
  lock.unlock();
  delete g;
  return Success;
}
