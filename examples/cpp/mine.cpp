#include <grpcpp/grpcpp.h>

#include <chrono>
#include <csignal>
#include <iostream>
#include <pthread.h>
#include <sstream>
#include <string>

#include "cbench/v1/system.grpc.pb.h"

using namespace cbench::v1;

const std::string kName = "mine";

std::string Text(const Example& example, const std::string& field) {
  auto found = example.fields().find(field);
  return found == example.fields().end() ? "" : found->second.string_value();
}

std::string Trimmed(const std::string& word) {
  size_t begin = word.find_first_not_of("?,.");
  if (begin == std::string::npos) return "";
  return word.substr(begin, word.find_last_not_of("?,.") - begin + 1);
}

bool SharesAWord(const std::string& sentence, const std::string& question) {
  std::istringstream words(question);
  for (std::string word; words >> word;) {
    if (word.size() > 3 && sentence.find(Trimmed(word)) != std::string::npos) return true;
  }
  return false;
}

// Keeps the sentences that share a word with the question.
std::string Kept(const std::string& context, const std::string& question) {
  std::string kept;
  for (size_t begin = 0; begin < context.size();) {
    size_t stop = context.find(". ", begin);
    size_t end = stop == std::string::npos ? context.size() : stop + 2;
    std::string sentence = context.substr(begin, end - begin);
    if (SharesAWord(sentence, question)) kept += sentence;
    begin = end;
  }
  return kept;
}

class Mine final : public System::Service {
  grpc::Status Describe(grpc::ServerContext*, const SystemDescribeRequest*,
                        SystemDescribeResponse* response) override {
    SystemInfo* mine = response->add_systems();
    mine->set_name(kName);
    mine->set_version("1");
    return grpc::Status::OK;
  }

  grpc::Status Process(grpc::ServerContext*, const ProcessRequest* request,
                       ProcessResponse* response) override {
    if (!request->system().empty() && request->system() != kName) {
      return {grpc::StatusCode::NOT_FOUND,
              "no system \"" + request->system() + "\". There is: " + kName};
    }
    const Example& example = request->example();
    (*response->mutable_fields())["context"].set_string_value(
        Kept(Text(example, "context"), Text(example, "question")));
    for (const auto& [name, value] : example.fields()) {
      if (name != "context") response->add_carried_fields(name);
    }
    return grpc::Status::OK;
  }
};

int main() {
  // Blocked before gRPC starts its threads, so that only this one hears of it.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  Mine mine;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(128 << 20);
  builder.RegisterService(&mine);
  auto server = builder.BuildAndStart();
  if (!server) return 1;
  std::cout << "cbench|1|tcp|127.0.0.1:" << port << std::endl;

  int signal = 0;
  sigwait(&ends, &signal);
  // No new calls, and those under way have four seconds.
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(4));
}
