// Runs several players at once over whole tables and logs.
#include "bindings/bindings.hpp"
#include "play/parallel.hpp"

namespace manul {
namespace {

// A table and the arrays that it points to.
struct TableView : Table {
  TableView(Matrix<float> contexts, Loss loss, Range actions, Matrix<double> positions, Matrix<double> values,
            Vector<double> lows, Vector<double> highs)
      : Table{contexts.data(),
              contexts.shape(1),
              loss,
              actions,
              positions.shape(1),
              positions.data(),
              values.data(),
              lows.size() > 0 ? lows.data() : nullptr,
              lows.size() > 0 ? highs.data() : nullptr},
        rounds(contexts.shape(0)), held_(contexts, positions, values, lows, highs) {
    const bool curves = loss == Loss::knots;
    if (positions.shape(0) != rounds || positions.shape(1) < 1 || (!curves && positions.shape(1) != 1))
      throw Rejected();
    if (curves && (values.shape(0) != rounds || values.shape(1) != knots)) throw Rejected();
    if (lows.size() != highs.size() || (lows.size() > 0 && lows.size() != rounds)) throw Rejected();
  }
  std::size_t rounds;

 private:
  std::tuple<Matrix<float>, Matrix<double>, Matrix<double>, Vector<double>, Vector<double>> held_;
};

void construct(TableView* self, Matrix<float> contexts, Loss loss, const Limits& actions, Matrix<double> positions,
               Matrix<double> values, Vector<double> lows, Vector<double> highs) {
  new (self) TableView(contexts, loss, to_range(actions), positions, values, lows, highs);
}

double loss_at(const TableView& table, std::size_t number, double action) {
  if (number >= table.rounds) throw Rejected();
  return table.loss_at(number, action);
}

void simulate_tables(const std::vector<Player*>& players, const std::vector<const TableView*>& tables,
                     std::size_t first, std::size_t last, const std::vector<Output>& actions,
                     const std::vector<Output>& densities, const std::vector<Output>& losses,
                     const std::vector<Output>& floors, const std::vector<Output>& windows, std::size_t threads) {
  check_sizes(players.size(), tables, actions, densities, losses, floors, windows);
  if (first > last) throw Rejected();
  std::vector<Record> records;
  for (std::size_t i = 0; i < players.size(); ++i) {
    if (last > tables[i]->rounds || players[i]->settings().width != tables[i]->width) throw Rejected();
    for (const Output& array : {actions[i], densities[i], losses[i], floors[i]})
      if (array.size() < last) throw Rejected();
    if (windows[i].size() < DrawnWindow::size * last) throw Rejected();
    records.push_back({actions[i].data(), densities[i].data(), losses[i].data(), floors[i].data(), windows[i].data()});
  }
  nb::gil_scoped_release unlocked;
  simulate_all(players, {tables.begin(), tables.end()}, first, last, records, threads);
}

void replay(const std::vector<Player*>& players, const Matrix<float>& contexts, const Vector<double>& actions,
            const Vector<double>& densities, const Vector<double>& losses, const Vector<double>& lows,
            const Vector<double>& highs, Output sums, Output weights, std::size_t threads) {
  if (players.empty() || sums.size() != players.size()) throw Rejected();
  const Rows all = rows(*players[0], contexts, lows, highs);
  for (const Player* player : players)
    if (player->settings().width != contexts.shape(1)) throw Rejected();
  check_sizes(all.count, actions, densities, losses);
  if (weights.size() > 0) check_sizes(all.count * players.size(), weights);
  nb::gil_scoped_release unlocked;
  replay_all(players, all, {actions.data(), densities.data(), losses.data()}, sums.data(),
             weights.size() > 0 ? weights.data() : nullptr, threads);
}

}  // namespace

void bind_simulation(nb::module_& module) {
  nb::enum_<Loss>(module, "Loss")
      .value("absolute", Loss::absolute)
      .value("squared", Loss::squared)
      .value("knots", Loss::knots);
  nb::class_<TableView>(module, "Table")
      .def("__init__", &construct, nb::kw_only(), "contexts"_a, "loss"_a, "actions"_a, "positions"_a, "values"_a,
           "lows"_a, "highs"_a)
      .def("loss", &loss_at, "number"_a, "action"_a);
  module.def("simulate", &simulate_tables, "players"_a, "tables"_a, "first"_a, "last"_a, "actions"_a, "densities"_a,
             "losses"_a, "floors"_a, "windows"_a, "threads"_a);
  module.def("replay", &replay, "players"_a, "contexts"_a, "actions"_a, "densities"_a, "losses"_a, "lows"_a, "highs"_a,
             "sums"_a, "weights"_a, "threads"_a);
}

}  // namespace manul
